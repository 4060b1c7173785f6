/** Plan of `temper init --task`: refuses all wrong input before anything is written or paid for. */
import { existsSync } from 'node:fs';
import { mkdir, rmdir } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { hashOf } from '../../core/text/hashes.ts';
import type { StructuredQuestion } from '../../play/hosted/ask-structured.ts';
import type { HostedLedger } from '../../play/hosted/hosted-ledger.ts';
import { parseHostedModel } from '../../play/connections/providers.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { CONFIG_FILE } from '../../workers/project/folders.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { findPlayers, type Player } from '../players/players.ts';
import { readBaseModel, requireBaseModel } from '../planning/base-model.ts';
import type { MakePlan } from '../scenarios/make-plan.ts';
import { parseMcp, readToolServer, type McpOptions, type ToolServerFacts } from '../scenarios/origin.ts';
import { checkPrices, readHeldOut } from '../scenarios/plan-scenarios.ts';
import type { InitContext } from './command.ts';
import { packageNameOf } from './plan-files.ts';

export interface TaskPlan {
  /** The command's own, with the folder as its project and working folder. */
  readonly environment: CommandEnvironment;
  readonly folder: string;
  /** Name of the agent, and of its first run. */
  readonly name: string;
  readonly task: string;
  readonly baseModel: string;
  readonly store: Store;
  /** Folder of this work in the store. */
  readonly work: string;
  readonly maxUsd: number | null;
  /** The hosted model that writes. */
  readonly writer: HostedPlayer;
  readonly judge: HostedPlayer;
  readonly scenarios: Pick<MakePlan, 'count' | 'heldOut' | 'attempts' | 'instructions'>;
  /** Null for an agent that answers once. */
  readonly tools: { readonly options: McpOptions; readonly server: ToolServerFacts } | null;
}

/** The plan, and what its parts share. */
export interface TaskWork extends TaskPlan {
  readonly ledger: HostedLedger;
  /** Asks the model that writes; an equal question is answered from the ledger. */
  readonly ask: <T>(question: StructuredQuestion<T>) => Promise<T>;
  /** Writes a file of the folder, unless a person has edited it. */
  readonly write: (name: string, text: string) => Promise<void>;
}

export type HostedPlayer = Player & { readonly hosted: NonNullable<Player['hosted']> };

/** One attempt tells whether a scenario is feasible; what the hosted model solves, the model in training has to learn. */
const DEFAULTS = { count: 24, attempts: 1, writer: 'openai/gpt-5-mini' };
const WORK_CHARACTERS = 16;
const LONGEST_NAME = 40;

type Flags = InitContext['flags'];

export async function planTask(context: InitContext): Promise<TaskPlan> {
  const { flags, args, cwd, env } = context;
  const task = readTask(flags);
  const folder = resolve(cwd, args.folder ?? '.');
  const environment: CommandEnvironment = { ...context, cwd: folder, project: folder };
  const baseModel = await findBaseModel(flags, environment, cwd);
  const count = flags.count ?? DEFAULTS.count;
  const heldOut = readHeldOut(flags['held-out'], count);
  const store = await openProjectStore(folder, env);
  const { instructions } = flags;
  const options = readMcp(flags, folder, cwd);
  const work = `init-${hashOf({ task, mcp: options, instructions }).slice(0, WORK_CHARACTERS)}`;
  return {
    environment,
    folder,
    name: packageNameOf(basename(folder)).slice(0, LONGEST_NAME),
    task,
    baseModel,
    store,
    work,
    maxUsd: flags['max-cost-usd'],
    ...(await findModels(environment, flags, store)),
    scenarios: { count, heldOut, attempts: flags.attempts ?? DEFAULTS.attempts, instructions },
    tools: options === null ? null : { options, server: await askServer(options, { store, work, folder }) },
  };
}

function readTask({ task }: Flags): string {
  const text = (task ?? '').trim();
  if (text !== '') return text;
  throw badConfig(
    '--task must be a sentence that says what the agent has to do, got an empty text; pass --task "Answer questions about …"',
  );
}

/** The configuration that the folder has keeps its base model. */
async function findBaseModel(flags: Flags, environment: CommandEnvironment, cwd: string): Promise<string> {
  const { project: folder, env } = environment;
  const given = flags['base-model'] === null ? null : pathFrom(flags['base-model'], folder, cwd);
  const configured = existsSync(join(folder, CONFIG_FILE))
    ? ((await loadConfig(folder, env)).train['base-model'] ?? null)
    : null;
  if (configured !== null && given !== null && given !== configured)
    throw badConfig(
      `--base-model must be that of ${join(folder, CONFIG_FILE)}, ${String(configured)}, got ${given}; edit the file, or leave --base-model out`,
    );
  const model = requireBaseModel({ 'base-model': configured === null ? given : String(configured) });
  await readBaseModel(model, environment, false);
  return model;
}

/** A text that is a path of `cwd`, such as `./model`, as a path of the folder; any other text as it is. */
function pathFrom(text: string, folder: string, cwd: string): string {
  if (!/^\.{1,2}(\/|$)/.test(text)) return text;
  const path = relative(folder, resolve(cwd, text));
  return path.startsWith('.') ? path : `./${path}`;
}

function readMcp(flags: Flags, folder: string, cwd: string): McpOptions | null {
  const { mcp, tools, 'mcp-env': env } = flags;
  if (mcp === null) return null;
  const options = parseMcp({ flag: '--mcp', place: mcp, only: tools, env });
  if (!('command' in options)) return options;
  // The server is started in the agent's folder.
  const args = (options.args ?? []).map((arg) => pathFrom(arg, folder, cwd));
  return { ...options, command: pathFrom(options.command, folder, cwd), args };
}

async function findModels(
  environment: CommandEnvironment,
  flags: Flags,
  store: Store,
): Promise<Pick<TaskPlan, 'writer' | 'judge'>> {
  const writerName = flags.writer ?? DEFAULTS.writer;
  const judgeName = flags.judge ?? writerName;
  for (const [flag, name] of Object.entries({ writer: writerName, judge: judgeName }))
    if (parseHostedModel(name, environment.env) === null)
      throw badConfig(
        `--${flag} must be a hosted model, got ${JSON.stringify(name)}; pass provider/model, such as openai/gpt-5-mini, or URL#MODEL`,
      );
  const { price, 'key-env': keyVariable } = flags;
  const model = [...new Set([writerName, judgeName])];
  const unset = { temperature: null, 'max-tokens': null, 'chat-template': null, seed: null, 'base-url': null };
  const asked = { ...unset, model, price, 'key-env': keyVariable };
  const { players } = await findPlayers({ ...environment, flags: asked }, store, 'init');
  if (flags['max-cost-usd'] !== null) checkPrices(players);
  const [writer, judge = writer] = players as [HostedPlayer, HostedPlayer?];
  return { writer, judge };
}

/** Starts the server in the folder; removes the folder again if the server is of no use. */
async function askServer(
  options: McpOptions,
  place: { store: Store; work: string; folder: string },
): Promise<ToolServerFacts> {
  const { folder } = place;
  const isNew = !existsSync(folder);
  await mkdir(folder, { recursive: true });
  try {
    return await readToolServer(options, place);
  } catch (error) {
    if (isNew) await rmdir(folder).catch(() => undefined);
    throw error;
  }
}
