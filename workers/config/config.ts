/** How this installation is built: `temporal.config.ts`, typed, no logic. How to reach Temporal stands in `temporal.toml` or TEMPORAL_*. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  DEFAULT_SLOTS,
  DEFAULT_THREADS,
  DTYPES,
  ENGINE_KEY_VARIABLE,
  ENGINES,
  GPU_QUEUE,
  LEAST_KV_CACHE_BYTES,
  LEAST_SLOTS,
  MOST_DEVICES,
  MOST_SLOTS,
} from '../../core/wire-constants.ts';
import { TemperError } from '../../core/failures.ts';
import { WORKFLOW_QUEUE } from '../../core/queues.ts';
import { checkCompiledLayers } from './compiled-layers.ts';
import { DEVICE, type Chosen, type EngineKind } from './engine-choices.ts';
import { explainImport } from '../user-code/explain-import.ts';
import { CONFIG_FILE } from '../project/folders.ts';
import { importDefault } from '../user-code/import-file.ts';
import { checkQuantization } from './quantization.ts';

const port = z.int().min(1).max(65_535).nullable();
const capacity = z.int().min(1);
const absolute = z.string().regex(/^([A-Za-z]:)?[\\/]/, 'must be an absolute path');

/** Of the environment, over the file. */
export const STORE_VARIABLE = 'TEMPER_STORE';
export const ENGINE_URL_VARIABLE = 'TEMPER_ENGINE_URL';

export const TemperConfigSchema = z.strictObject({
  /** Where heavy things live; null: the project's `.temper/store`. */
  store: z.string().nullable().prefault(null),
  queues: z
    .strictObject({ workflows: z.string().prefault(WORKFLOW_QUEUE), gpu: z.string().prefault(GPU_QUEUE) })
    .prefault({}),
  /** What one TypeScript worker takes at once. A rollout is a whole group of attempts, which mostly wait for the engine. */
  capacity: z
    .strictObject({
      workflowTasks: capacity.min(2).prefault(10),
      cachedWorkflows: capacity.prefault(50),
      rollouts: capacity.prefault(16),
    })
    .prefault({}),
  /** An engine's url where a GPU worker runs elsewhere; null: the local stack starts one. The key is found by its variable's name. */
  engine: z
    .strictObject({
      url: z.url().nullable().prefault(null),
      keyVariable: z.string().prefault(ENGINE_KEY_VARIABLE),
      threads: z.int().min(1).prefault(DEFAULT_THREADS),
      /** `auto`: a CUDA GPU if there is one, else the CPU. */
      device: z.string().regex(DEVICE.pattern, `must be ${DEVICE.rule}`).prefault('auto'),
      /** Of the base model's weights; `auto`: bfloat16 on a GPU, float32 on the CPU. */
      dtype: z.enum(DTYPES).prefault('auto'),
      /** How many devices train; sampling takes one. On the CPU, processes. */
      devices: z.int().min(1).max(MOST_DEVICES).prefault(1),
      /** Each of them holds a part of the base model, and never all of it. */
      shardBaseModel: z.boolean().prefault(false),
      /** The linear layers of the base model take 4 bits per weight (NF4). Of `embedded` alone. */
      loadIn4bit: z.boolean().prefault(false),
      /** PyTorch compiles the decoder layers that train. On GPUs alone. */
      compileLayers: z.boolean().prefault(false),
      /** Memory that keys and values of requests may take; null: 4 GiB, on a GPU a quarter of its memory. */
      kvCacheBytes: z.int().min(LEAST_KV_CACHE_BYTES).nullable().prefault(null),
      /** The most of them for prompts that are kept to be reused; 0 keeps none, null: a quarter. */
      prefixCacheBytes: z.int().min(0).nullable().prefault(null),
      /** Requests that the engine decodes at once. */
      slots: z.int().min(LEAST_SLOTS).max(MOST_SLOTS).prefault(DEFAULT_SLOTS),
      /** What samples: the GPU worker's own engine, or vLLM; null: by the machine and the run (`decideEngine`). */
      kind: z.enum(ENGINES).nullable().prefault(null),
      /** Of `vllm` alone. */
      vllm: z
        .strictObject({
          /** Of a server that the GPU worker starts: further arguments for vLLM, and numbers of GPUs for it alone. */
          args: z.array(z.string()).prefault([]),
          devices: z.array(z.int().min(0)).prefault([]),
          /** The root of a server that runs already; null: the GPU worker starts one. */
          url: z
            .url()
            .refine(isRoot, 'must be a root like http://gpu-host:8000: no /v1, user, query or fragment')
            .nullable()
            .prefault(null),
          /** A folder that its host shares with the GPU worker's, here and there (null: the same path). */
          adapters: z
            .strictObject({ folder: absolute.nullable().prefault(null), as: absolute.nullable().prefault(null) })
            .prefault({}),
        })
        .prefault({}),
    })
    .prefault({}),
  /** What `--base-model` names mean on this host: a folder, relative to the project, or `hub:OWNER/NAME` for a model of the Hugging Face hub. */
  models: z.record(z.string(), z.string()).prefault({}),
  /** Flags of `temper train`, by their names, that a command line need not repeat. */
  train: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())])).prefault({}),
  localStack: z
    .strictObject({
      /** Ports; null: free ones are chosen once and remembered. */
      temporalPort: port.prefault(null),
      uiPort: port.prefault(null),
      enginePort: port.prefault(null),
      /** A second GPU worker waits with its imports done (some 450 MB, no weights) to take the place of one that dies. */
      standby: z.boolean().prefault(true),
    })
    .prefault({}),
});

export type TemperConfig = z.output<typeof TemperConfigSchema>;
export type EngineConfig = TemperConfig['engine'];
/** Of which is decided what samples. */
export type ChosenEngine = Chosen<EngineConfig>;
type TemperConfigInput = z.input<typeof TemperConfigSchema>;

/** Gives `temporal.config.ts` its types and defaults; a key that means nothing is an error. */
export function defineConfig(input: TemperConfigInput = {}): TemperConfig {
  const parsed = TemperConfigSchema.safeParse(input);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new TemperError('BadConfig', `temporal.config.ts: ${describeIssue(issue!, input)}`);
  }
  if (parsed.data.engine.url !== null) refuseIdle(parsed.data, 'engine.url', 'remove one of them');
  return parsed.data;
}

function describeIssue(issue: z.core.$ZodIssue, input: unknown): string {
  const path = issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    const keys = issue.keys.map((key) => JSON.stringify(key)).join(', ');
    const known = Object.keys(fieldOf(TemperConfigSchema.parse({}), issue.path) as object);
    const place = path === '' ? '' : ` in ${path}`;
    return `unknown ${issue.keys.length === 1 ? 'key' : 'keys'} ${keys}${place}; known are ${known.join(', ')}`;
  }
  const rule = issue.message.replace('Invalid input: ', '');
  const shown = JSON.stringify(fieldOf(input, issue.path))?.replace(/\/\/[^/@]*@/, '//…@');
  const got = issue.code === 'invalid_type' ? '' : `, got ${shown}`;
  if (path === '') return `${rule}; write export default defineConfig({ … })`;
  return `${path}: ${rule}${got}; correct it, or remove it`;
}

/** Where the local stack starts no GPU worker. The stack's own workers are told of its engine by the same variable. */
export function checkLocalEngine(config: TemperConfig): void {
  if (config.engine.url !== null) refuseIdle(config, ENGINE_URL_VARIABLE, `remove it, or unset ${ENGINE_URL_VARIABLE}`);
}

function refuseIdle(config: TemperConfig, because: string, remedy: string): void {
  const idle = LOCAL_ENGINE.find((path) => !isDefault(config, path));
  if (idle === undefined) return;
  throw new TemperError(
    'BadConfig',
    `${idle} in temporal.config.ts has no effect with ${because} (it configures the GPU worker that the local stack starts); ${remedy}`,
  );
}

/** Paths of vLLM's API follow. */
function isRoot(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || /\/v1\/?$/.test(url.pathname)) return false;
  return [url.username, url.password, url.search, url.hash].every((part) => part === '');
}

/** Of a vLLM that the GPU worker starts, and of one that runs already. */
const MANAGED = ['engine.vllm.args', 'engine.vllm.devices'] as const;
const SHARED = ['engine.vllm.adapters.folder', 'engine.vllm.adapters.as'] as const;

/** Fields that one engine alone has a use for. */
const FIELDS_OF = {
  embedded: ['engine.prefixCacheBytes'],
  vllm: [...MANAGED, 'engine.vllm.url', ...SHARED],
} as const;

/** A field of `temporal.config.ts` that only this engine has a use for; null where none is set. */
export function fieldOnlyOf(kind: EngineKind, engine: EngineConfig): string | null {
  return FIELDS_OF[kind].find((path) => !isDefault({ engine }, path)) ?? null;
}

/** Of the GPU worker that is about to be started: flags may have chosen another engine than the configuration. */
export function checkEngineKind(engine: ChosenEngine): void {
  checkQuantization(engine);
  checkCompiledLayers(engine);
  const other = engine.kind === 'vllm' ? 'embedded' : 'vllm';
  const idle = fieldOnlyOf(other, engine);
  if (idle !== null)
    throw new TemperError(
      'BadConfig',
      `${idle} in temporal.config.ts has no effect with the engine ${engine.kind}; remove it, or set engine.kind to ${other} (or pass --engine ${other})`,
    );
  if (engine.kind === 'vllm') checkVllmPlace(engine);
}

function checkVllmPlace(engine: ChosenEngine): void {
  const isExternal = engine.vllm.url !== null;
  const idle = (isExternal ? [...MANAGED, 'engine.kvCacheBytes'] : SHARED).find((path) => !isDefault({ engine }, path));
  const because = isExternal ? 'with engine.vllm.url (that server runs already)' : 'without engine.vllm.url';
  if (idle !== undefined)
    throw new TemperError('BadConfig', `${idle} in temporal.config.ts has no effect ${because}; remove it`);
  if (isExternal && engine.vllm.adapters.folder === null)
    throw new TemperError(
      'BadConfig',
      'engine.vllm.url in temporal.config.ts must come with engine.vllm.adapters.folder, where the server finds adapters (vLLM takes none by upload); add a folder that both hosts see',
    );
}

/** Fields of the GPU worker that the local stack starts. */
const LOCAL_ENGINE = [
  'engine.threads',
  'engine.device',
  'engine.dtype',
  'engine.devices',
  'engine.shardBaseModel',
  'engine.loadIn4bit',
  'engine.compileLayers',
  'engine.kvCacheBytes',
  'engine.prefixCacheBytes',
  'engine.slots',
  'engine.kind',
  ...FIELDS_OF.vllm,
  'localStack.enginePort',
  'localStack.standby',
] as const;

function isDefault(config: Pick<TemperConfig, 'engine'>, path: string): boolean {
  const names = path.split('.');
  return isDeepStrictEqual(fieldOf(config, names), fieldOf(TemperConfigSchema.parse({}), names));
}

function fieldOf(config: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((nested, key) => (nested as Record<PropertyKey, unknown>)[key], config);
}

/** The project's configuration (the defaults where it has no `temporal.config.ts`), under what the environment says. */
export async function loadConfig(project: string, env: NodeJS.ProcessEnv = process.env): Promise<TemperConfig> {
  const config = await readConfigFile(project);
  const { [STORE_VARIABLE]: store, [ENGINE_URL_VARIABLE]: url, [ENGINE_KEY_VARIABLE]: key } = env;
  if (url && !URL.canParse(url))
    throw new TemperError(
      'BadConfig',
      `${ENGINE_URL_VARIABLE} must be a URL, got ${JSON.stringify(url)}; export one like http://gpu-host:8000`,
    );
  const engine = {
    ...config.engine,
    url: url || config.engine.url,
    keyVariable: key ? ENGINE_KEY_VARIABLE : config.engine.keyVariable,
  };
  if (engine.url === null && !isDefault(config, 'engine.keyVariable'))
    throw new TemperError(
      'BadConfig',
      `engine.keyVariable in temporal.config.ts has no effect without engine.url (the local stack makes a key of its own), got ${config.engine.keyVariable}; add engine.url, or remove it`,
    );
  return { ...config, store: store || config.store, engine };
}

async function importConfig(file: string): Promise<unknown> {
  try {
    return await importDefault(file);
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    throw new TemperError('BadConfig', `${file} cannot be loaded: ${explainImport(cause, file)}`, { cause });
  }
}

async function readConfigFile(project: string): Promise<TemperConfig> {
  const file = join(project, CONFIG_FILE);
  if (!existsSync(file)) return defineConfig();
  const exported = await importConfig(file);
  if (exported === undefined) {
    throw new TemperError(
      'BadConfig',
      `${file} must export its configuration by default; write export default defineConfig({ … })`,
    );
  }
  return defineConfig(exported as TemperConfigInput);
}
