import { chmod, mkdir, readdir, rename, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import type { ExportInput } from '../../core/contract/programs.ts';
import { CARD, CHAT_TEMPLATE_FILE } from '../../outbound/deploy/targets/files.ts';
import { findTrainedPolicy, type TrainedPolicy } from '../../store/records/runs/find-policy.ts';
import { readRunTemplate } from '../../store/records/runs/chat-templates.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { readTrainedName } from '../command-line/values.ts';
import { EXIT } from '../command-line/errors.ts';
import { formatBytes, plural } from '../../core/reports/format.ts';
import { writeKnownModels } from '../../workers/base-models/known-models.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { Exported } from '../../workers/python/export-policy.ts';
import { askPython } from '../../workers/python/run-program.ts';
import { printJson } from '../terminal/output.ts';
import { programContext } from '../terminal/stack-events.ts';
import { readCardFacts, type Converted } from '../../operations/model-card/card-facts.ts';
import type { ExportContext } from './command.ts';
import { renderModelCard } from '../../operations/model-card/model-card.ts';

export async function exportPolicy(context: ExportContext): Promise<number> {
  const { flags, args, cwd, project, env } = context;
  const folder = resolve(cwd, flags.to);
  await requireFree(folder);
  const store = await openProjectStore(project, env);
  const policy = await findTrainedPolicy(store, readTrainedName(args.checkpoint));
  const format = formatOf(context, policy);
  const partial = join(dirname(folder), `.${basename(folder)}.${randomBytes(6).toString('hex')}.partial`);
  let bytes = 0;
  try {
    await writing(folder, () => mkdir(partial, { recursive: true }));
    const converted = await fill(partial, format, store, policy, context);
    const card = renderModelCard(await readCardFacts(store, policy, { format, converted }, context));
    await writing(folder, () => writeFile(join(partial, CARD), card));
    await openToReaders(partial);
    bytes = await sizeOf(partial);
    await publish(partial, folder);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  await tell(context, policy, format, folder, bytes);
  return EXIT.ok;
}

type Format = NonNullable<ExportContext['flags']['format']>;

const WHOLE: readonly Format[] = ['merged', 'gguf'];

/** Format by flag or by run: a run that trained all weights has no adapter. */
function formatOf({ flags }: ExportContext, { name, config }: TrainedPolicy): Format {
  const isFull = config.train.lora === null;
  const format = flags.format ?? (isFull ? 'merged' : 'peft');
  if (isFull && !WHOLE.includes(format))
    throw badConfig(
      `--format ${format} needs an adapter, but ${name} has none: its run trains all weights; pass --format merged, or leave --format out`,
    );
  if (!WHOLE.includes(format) && flags.dtype !== null)
    throw badConfig('--dtype has no effect without --format merged or gguf; pass both, or leave it out');
  return format;
}

/** Fills the folder; null if it holds the adapter as it was committed. */
async function fill(
  folder: string,
  format: Format,
  store: Store,
  policy: TrainedPolicy,
  context: ExportContext,
): Promise<Converted | null> {
  if (format !== 'peft') return convertPolicy(folder, format, store, policy, context);
  const { adapter, manifest } = policy;
  const files = { 'adapter_config.json': manifest.adapterConfig, 'adapter_model.safetensors': adapter };
  for (const [name, ref] of Object.entries(files)) {
    const data = await store.getBlob(ref);
    await writing(folder, () => writeFile(join(folder, name), data));
  }
  const template = await readRunTemplate(store, policy.config);
  if (template !== null) await writing(folder, () => writeFile(join(folder, CHAT_TEMPLATE_FILE), template));
  return null;
}

async function requireFree(folder: string): Promise<void> {
  const found = await stat(folder).catch(() => null);
  if (found === null) return;
  const isFree = found.isDirectory() && (await readdir(folder)).length === 0;
  if (!isFree) throw taken(folder);
}

/** Publishes the whole folder at once, or not at all. */
async function publish(partial: string, folder: string): Promise<void> {
  try {
    await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    await rename(partial, folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR' ? taken(folder) : refused(folder, error);
  }
}

function taken(folder: string): TemperError {
  return badConfig(
    `--to must be a new or an empty folder (an export overwrites nothing), but ${folder} is not; pass another one, or remove it first`,
  );
}

async function writing<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refused(folder, error);
  }
}

function refused(folder: string, cause: unknown): TemperError {
  const reason = (cause as NodeJS.ErrnoException).code ?? String(cause);
  return badConfig(
    `the folder ${folder} must be writable and have room, but refused (${reason}); free space there, or pass another one`,
    { cause },
  );
}

/** Gives files the user's default permissions: safetensors writes weights that only the owner can read. */
async function openToReaders(folder: string): Promise<void> {
  const mode = 0o666 & ~process.umask();
  for (const name of await readdir(folder)) await chmod(join(folder, name), mode);
}

async function sizeOf(folder: string): Promise<number> {
  const sizes = await Promise.all((await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function tell(
  { flags, output, cwd }: ExportContext,
  { name, manifest, config, adapter }: TrainedPolicy,
  format: Format,
  folder: string,
  bytes: number,
): Promise<void> {
  const files = (await readdir(folder)).toSorted();
  const dtype = WHOLE.includes(format) ? (flags.quantize ?? flags.dtype ?? 'float32') : null;
  const { baseModel } = manifest;
  if (flags.json) {
    printJson(output, { policy: name, format, dtype, folder, files, bytes, baseModel, adapterSha256: adapter.sha256 });
    return;
  }
  const weights = config.train.lora === null ? 'all weights' : 'merged weights';
  const whole = `${weights} in ${dtype}${format === 'gguf' ? ' (GGUF)' : ''}`;
  const what = dtype === null ? `its adapter (${format === 'mlx' ? 'MLX' : 'PEFT'})` : whole;
  const place = relative(cwd, folder) || '.';
  output.line(`${name}: ${what}, ${plural(files.length, 'file')}, ${formatBytes(bytes)}, in ${place}`);
  output.line(`how to load it: ${join(place, CARD)}`);
}

async function convertPolicy(
  folder: string,
  format: NonNullable<ExportInput['format']>,
  store: Store,
  { name, config }: TrainedPolicy,
  context: ExportContext,
): Promise<Converted> {
  const { flags, project, env } = context;
  const dtype = flags.dtype ?? 'float32';
  const models = writeKnownModels(project, await loadConfig(project, env));
  const { chatTemplateSha256 = null } = config.rollout;
  const policy = { store: store.uri, policy: name, models };
  const input = { ...policy, folder, format, dtype, quantize: flags.quantize ?? undefined, chatTemplateSha256 };
  const verb = format === 'mlx' || config.train.lora === null ? 'written' : 'merged';
  const other = config.train.lora === null ? '' : ', or export the adapter alone with --format peft';
  const program = { ...programContext(context), name: 'export', input } as const;
  const exported = await askPython(Exported, `${name} could not be ${verb}`, program, `run temper doctor${other}`);
  return { ...exported, dtype: flags.quantize ?? dtype };
}
