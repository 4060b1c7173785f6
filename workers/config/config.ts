/** Reads `temporal.config.ts`: typed, no logic. Temporal's address is in `temporal.toml` or TEMPORAL_*. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { EngineSettings } from '../../core/contract/engine.ts';
import { TrackerSettings } from '../../core/contract/outbound.ts';
import { TraceSettings } from '../../core/contract/trace.ts';
import { changedFields } from '../../core/rules/engine-rules.ts';
import { ENGINE_KEY_VARIABLE, GPU_QUEUE } from '../../core/contract/wire-constants.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { WORKFLOW_QUEUE } from '../../core/names/queues.ts';
import { explainImport } from '../user-code/explain-import.ts';
import { CONFIG_FILE } from '../project/folders.ts';
import { importDefault } from '../user-code/import-file.ts';

export { csvTracker as csv, mlflow, trackio, wandb } from '../../core/contract/outbound.ts';
export { langfuseTraces, mlflowTraces, otlp, weaveTraces } from '../../core/contract/trace.ts';

const port = z.int().min(1).max(65_535).nullable();
const capacity = z.int().min(1);

/** Environment variable that overrides the file. */
export const STORE_VARIABLE = 'TEMPER_STORE';
export const ENGINE_URL_VARIABLE = 'TEMPER_ENGINE_URL';

export const TemperConfigSchema = z.strictObject({
  /** URI or folder of the store; null: the project's `.temper/store`. */
  store: z.string().nullable().prefault(null),
  queues: z
    .strictObject({ workflows: z.string().prefault(WORKFLOW_QUEUE), gpu: z.string().prefault(GPU_QUEUE) })
    .prefault({}),
  /** Concurrency of one TypeScript worker. A rollout is a whole group of attempts, which mostly wait for the engine. */
  capacity: z
    .strictObject({
      workflowTasks: capacity.min(2).prefault(10),
      cachedWorkflows: capacity.prefault(50),
      rollouts: capacity.prefault(16),
    })
    .prefault({}),
  /** URL of an engine elsewhere; null: the local stack starts one. The key is in the variable of this name. */
  engine: z
    .strictObject({
      url: z.url().nullable().prefault(null),
      keyVariable: z.string().prefault(ENGINE_KEY_VARIABLE),
      ...EngineSettings.shape,
      /** Null: `decideEngine` chooses by the machine and the run. */
      kind: EngineSettings.shape.kind.unwrap().nullable().default(null),
    })
    .prefault({}),
  /** Names for `--base-model` on this host: a folder, relative to the project, or `hub:OWNER/NAME`. */
  models: z.record(z.string(), z.string()).prefault({}),
  /** Flags of `temper train`, by their names, that a command line need not repeat. */
  train: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())])).prefault({}),
  /** Your prices of hosted models by `provider/model`, in US dollars per million tokens; they replace list prices. */
  prices: z
    .record(
      z.string(),
      z.strictObject({ usdPerMillionInput: z.number().min(0), usdPerMillionOutput: z.number().min(0) }),
    )
    .prefault({}),
  /** Trackers that each run tells of its steps. */
  track: z.array(TrackerSettings).prefault([]),
  /** Targets that get attempts of each run as traces. */
  trace: z.array(TraceSettings).prefault([]),
  /** Address at which workers serve `/metrics` for Prometheus; without a port, none. */
  metrics: z.strictObject({ port: port.prefault(null), host: z.string().min(1).prefault('127.0.0.1') }).prefault({}),
  localStack: z
    .strictObject({
      /** Ports; null: free ones are chosen once and remembered. */
      temporalPort: port.prefault(null),
      uiPort: port.prefault(null),
      enginePort: port.prefault(null),
      /**
       * A second GPU worker waits with its imports done (some 450 MB, no weights) to take the place of one that dies.
       * Null: if there is enough memory when the stack starts.
       */
      standby: z.boolean().nullable().prefault(null),
    })
    .prefault({}),
});

export type TemperConfig = z.output<typeof TemperConfigSchema>;
export type EngineConfig = TemperConfig['engine'];
/** The configuration under the flags of a command, with what samples. */
export type MergedEngine = EngineConfig & EngineSettings;
type TemperConfigInput = z.input<typeof TemperConfigSchema>;

/** Gives `temporal.config.ts` its types and defaults; a key that means nothing is an error. */
export function defineConfig(input: TemperConfigInput = {}): TemperConfig {
  const parsed = TemperConfigSchema.safeParse(input);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw badConfig(`temporal.config.ts: ${describeIssue(issue!, input)}`);
  }
  if (parsed.data.engine.url !== null) refuseIdle(parsed.data, 'engine.url', 'remove one of them');
  refuseSameName(parsed.data);
  return parsed.data;
}

/** A target is known by its name: in flags, in its cursor and in the id of its workflow. */
function refuseSameName({ track, trace }: TemperConfig): void {
  const names = [...track, ...trace].map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  throw badConfig(
    `temporal.config.ts: trackers and targets for traces must have different names, got ${twice} twice; give one of them another, as in wandb({ name: '${twice}-2' })`,
  );
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

/** Refuses an engine elsewhere if the local stack needs its own; its workers get that one in the same variable. */
export function checkLocalEngine(config: TemperConfig): void {
  if (config.engine.url !== null) refuseIdle(config, ENGINE_URL_VARIABLE, `remove it, or unset ${ENGINE_URL_VARIABLE}`);
}

/** Fields of the GPU worker that the local stack starts. */
const LOCAL_ENGINE = /^(engine\.(?!url$|keyVariable$)|localStack\.(enginePort|standby)$)/;

function refuseIdle(config: TemperConfig, because: string, remedy: string): void {
  const idle = changedFields(config, TemperConfigSchema.parse({})).find((path) => LOCAL_ENGINE.test(path));
  if (idle === undefined) return;
  throw badConfig(
    `${idle} in temporal.config.ts has no effect with ${because} (it configures the GPU worker that the local stack starts); ${remedy}`,
  );
}

function fieldOf(config: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((nested, key) => (nested as Record<PropertyKey, unknown>)[key], config);
}

/** The project's configuration (the defaults where it has no `temporal.config.ts`), under what the environment says. */
export async function loadConfig(project: string, env: NodeJS.ProcessEnv = process.env): Promise<TemperConfig> {
  const config = await readConfigFile(project);
  const { [STORE_VARIABLE]: store, [ENGINE_URL_VARIABLE]: url, [ENGINE_KEY_VARIABLE]: key } = env;
  if (url && !URL.canParse(url))
    throw badConfig(
      `${ENGINE_URL_VARIABLE} must be a URL, got ${JSON.stringify(url)}; export one like http://gpu-host:8000`,
    );
  const engine = {
    ...config.engine,
    url: url || config.engine.url,
    keyVariable: key ? ENGINE_KEY_VARIABLE : config.engine.keyVariable,
  };
  if (engine.url === null && config.engine.keyVariable !== ENGINE_KEY_VARIABLE)
    throw badConfig(
      `engine.keyVariable in temporal.config.ts has no effect without engine.url (the local stack makes a key of its own), got ${config.engine.keyVariable}; add engine.url, or remove it`,
    );
  return { ...config, store: store || config.store, engine };
}

async function importConfig(file: string): Promise<unknown> {
  try {
    return await importDefault(file);
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    throw badConfig(`${file} cannot be loaded: ${await explainImport(cause, file)}`, { cause });
  }
}

async function readConfigFile(project: string): Promise<TemperConfig> {
  const file = join(project, CONFIG_FILE);
  if (!existsSync(file)) return defineConfig();
  const exported = await importConfig(file);
  if (exported === undefined) {
    throw badConfig(`${file} must export its configuration by default; write export default defineConfig({ … })`);
  }
  return defineConfig(exported as TemperConfigInput);
}
