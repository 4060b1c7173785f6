/** Rules of which options of engine and training go together, checked where the user's input is read. */
import type { LoraConfig } from '../contract/contract.ts';
import { EngineSettings, type EngineKind } from '../contract/engine.ts';
import { badConfig, type TemperError } from '../contract/failures.ts';
import { VLLM_LORA_RANK, VLLM_POLICIES } from '../contract/wire-constants.ts';

type Overridden = 'kind' | 'device' | 'dtype' | 'devices' | 'shardBaseModel' | 'loadIn4bit';
/** Flags of a command; null, false or absent: as `temporal.config.ts` has it. */
export type EngineOverrides = { readonly [Name in Overridden]?: EngineSettings[Name] | null };

/** Flags override the configuration. `usual`: the engine if neither names one. */
export function mergeEngineConfig<Configured extends { readonly kind: EngineKind | null }>(
  configured: Configured,
  overrides: EngineOverrides,
  usual: EngineKind = 'embedded',
): Configured & { readonly kind: EngineKind } {
  const given = Object.entries(overrides).filter(([, value]) => value != null && value !== false);
  return { ...configured, kind: configured.kind ?? usual, ...Object.fromEntries(given) };
}

/** The engine with room for at least so many policies, if it is vLLM, which proves each that it loads. */
export function withPolicies<Engine extends Pick<EngineSettings, 'kind' | 'vllm'>>(
  engine: Engine,
  policies: number = VLLM_POLICIES,
): Engine {
  if (engine.kind !== 'vllm' || engine.vllm.policies >= policies) return engine;
  return { ...engine, vllm: { ...engine.vllm, policies } };
}

/** Refuses settings that a GPU worker cannot be started with, once it is decided what samples. */
export function checkStartedEngine(engine: EngineSettings): void {
  checkQuantization(engine);
  checkSharding(engine);
  const other = engine.kind === 'vllm' ? 'embedded' : 'vllm';
  const idle = fieldOnlyOf(other, engine);
  if (idle !== null)
    throw idleField(
      idle,
      `with the engine ${engine.kind}`,
      `, or set engine.kind to ${other} (or pass --engine ${other})`,
    );
  if (engine.kind === 'vllm') checkVllmPlace(engine);
}

/** Refuses to train what these settings cannot. */
export function checkTraining(engine: EngineSettings, { lora }: { readonly lora: LoraConfig | null }): void {
  if (lora === null && engine.loadIn4bit)
    throw unquantizable(
      'a LoRA adapter to train, because weights in 4 bits are frozen, got --full-fine-tuning; leave that out',
    );
  checkQuantization(engine);
  if (lora === null && engine.shardBaseModel)
    throw badConfig(
      '--full-fine-tuning needs the whole base model on each device: only frozen weights can be sharded; leave --shard-base-model (engine.shardBaseModel) or --full-fine-tuning out',
    );
  if (engine.kind !== 'vllm') return;
  if (lora === null)
    throw badConfig(
      '--full-fine-tuning needs the embedded engine: vLLM takes only adapters per request; pass --engine embedded, or leave --full-fine-tuning out',
    );
  if (lora.dora)
    throw badConfig(
      '--lora-dora needs the embedded engine: vLLM loads no adapters with magnitudes (DoRA); pass --engine embedded, or leave --lora-dora out',
    );
}

/** The reason why vLLM cannot sample with these settings for runs that train this; null if it can. */
export function vllmObstacle(engine: EngineSettings, trained: readonly (LoraConfig | null)[]): string | null {
  if (engine.loadIn4bit) return 'vLLM cannot load base models in 4 bits as Temper does';
  const field = fieldOnlyOf('embedded', engine);
  if (field !== null) return `${field} in temporal.config.ts has no effect with vLLM`;
  for (const lora of trained) {
    if (lora === null) return 'vLLM takes only adapters, and all weights are trained';
    if (lora.dora) return 'vLLM loads no adapters with magnitudes (DoRA)';
    if (lora.rank > VLLM_LORA_RANK && !hasOwnRank(engine))
      return `vLLM is started with room for adapters of rank ${VLLM_LORA_RANK}, and this one has ${lora.rank} (add --max-lora-rank to engine.vllm.args)`;
  }
  return null;
}

function hasOwnRank({ vllm }: EngineSettings): boolean {
  return vllm.args.some((arg) => arg.replaceAll('_', '-').startsWith('--max-lora-rank'));
}

type Quantization = Pick<EngineSettings, 'loadIn4bit'> & { readonly kind: EngineKind | null };

/** Weights in 4 bits would save memory. */
export function canQuantize({ kind, loadIn4bit }: Quantization): boolean {
  return kind !== 'vllm' && !loadIn4bit;
}

/** A checkpoint is used beside the weights that it was trained beside. `use`: such as `demo@2 must be served`. */
export function checkTrainedWeights(use: string, { kind, loadIn4bit }: Quantization): void {
  if (loadIn4bit && kind === 'vllm')
    throw badConfig(
      `${use} by the embedded engine, because vLLM cannot load its base model in 4 bits as Temper does, got vllm; set engine.kind in temporal.config.ts to embedded`,
    );
}

function checkQuantization({ loadIn4bit, kind, shardBaseModel }: EngineSettings): void {
  if (!loadIn4bit) return;
  if (kind === 'vllm')
    throw unquantizable(
      'the embedded engine, because vLLM reads the weights of the model itself, got vllm; choose the embedded engine (--engine, engine.kind)',
    );
  if (shardBaseModel)
    throw unquantizable(
      'a whole base model on each device, because weights in 4 bits cannot be sharded, got --shard-base-model; leave that out (engine.shardBaseModel)',
    );
}

function unquantizable(rule: string): TemperError {
  return badConfig(
    `--load-in-4bit (engine.loadIn4bit in temporal.config.ts) must come with ${rule}, or leave --load-in-4bit out`,
  );
}

type Sharding = Pick<EngineSettings, 'devices' | 'shardBaseModel' | 'device' | 'kind'>;

/** Refuses to shard for a single device, or beside a whole model on a GPU. `hasGpus`: this host is known to have some. */
export function checkSharding({ devices, shardBaseModel, device, kind }: Sharding, hasGpus = false): void {
  if (!shardBaseModel) return;
  if (devices === 1) throw unshardable('several --devices', '1', 'pass --devices 2');
  if (kind === 'embedded' && device !== 'cpu' && hasGpus)
    throw unshardable(
      '--engine vllm on GPUs',
      'embedded, which holds the whole base model on one of them',
      'pass --engine vllm',
    );
}

function unshardable(rule: string, got: string, remedy: string): TemperError {
  return badConfig(
    `--shard-base-model (engine.shardBaseModel in temporal.config.ts) must come with ${rule}, got ${got}; ${remedy}, or leave it out`,
  );
}

const FIELDS_OF = { embedded: /^engine\.prefixCacheBytes$/, vllm: /^engine\.vllm\./ } as const;
/** Fields of a vLLM that the GPU worker starts, and of one that runs already. */
const MANAGED = /^engine\.(vllm\.(args|devices)|kvCacheBytes)$/;
const SHARED = /^engine\.vllm\.adapters\./;

/** The first field that is set although only this engine uses it; null if there is none. */
function fieldOnlyOf(kind: EngineKind, engine: EngineSettings): string | null {
  return findChanged(engine, FIELDS_OF[kind]);
}

function checkVllmPlace(engine: EngineSettings): void {
  const { url, adapters } = engine.vllm;
  const idle = findChanged(engine, url === null ? SHARED : MANAGED);
  if (idle !== null)
    throw idleField(
      idle,
      url === null ? 'without engine.vllm.url' : 'with engine.vllm.url (that server runs already)',
      '',
    );
  if (url !== null && adapters.folder === null)
    throw badConfig(
      'engine.vllm.url in temporal.config.ts must come with engine.vllm.adapters.folder, where the server finds adapters (vLLM takes none by upload); add a folder that both hosts see',
    );
}

function findChanged(engine: EngineSettings, fields: RegExp): string | null {
  return changedFields(engine, EngineSettings.parse({}), 'engine').find((path) => fields.test(path)) ?? null;
}

function idleField(path: string, because: string, remedy: string): TemperError {
  return badConfig(`${path} in temporal.config.ts has no effect ${because}; remove it${remedy}`);
}

/** Paths of the fields that differ from `usual`, in its order. */
export function changedFields(value: unknown, usual: unknown, path = ''): string[] {
  if (typeof usual !== 'object' || usual === null || Array.isArray(usual))
    return JSON.stringify(value) === JSON.stringify(usual) ? [] : [path];
  return Object.entries(usual).flatMap(([name, inner]) =>
    changedFields((value as Record<string, unknown>)[name], inner, path === '' ? name : `${path}.${name}`),
  );
}
