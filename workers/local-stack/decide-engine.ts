/**
 * Default engine if neither a flag nor `temporal.config.ts` names one: vLLM on a GPU if it is installed and can sample
 * what the run trains, else the embedded engine. Decided once, before anything is planned.
 */
import type { LoraConfig } from '../../core/contract/contract.ts';
import type { EngineKind, EngineSettings } from '../../core/contract/engine.ts';
import { mergeEngineConfig, vllmObstacle, type EngineOverrides } from '../../core/rules/engine-rules.ts';
import type { EngineConfig } from '../config/config.ts';
import { findGpuVllm } from '../install/vllm-environment.ts';
import { findGpus } from '../devices/nvidia-smi.ts';

/** Use of an engine that is to be started. */
export interface EngineUse {
  /** Trained weights that it samples from: adapters, or all weights (null). Empty if not known yet. */
  readonly trained: readonly (LoraConfig | null)[];
  /** Policies that a step samples from; absent: as many as a run without roles. */
  readonly policies?: number;
  /** False for a run of supervised steps alone. */
  readonly samples: boolean;
  /** Engine of a continued run's newest checkpoint. Asked on a GPU only. */
  readonly before?: () => Promise<EngineKind | null>;
}

export const ANY_USE: EngineUse = { trained: [], samples: true };

export interface EngineDecision {
  readonly kind: EngineKind;
  /** Same as in `EngineUse`. */
  readonly policies?: number;
  /** Explanation for the user; null without a GPU, or with an external engine: there was no choice. */
  readonly reason: string | null;
}

interface Place {
  readonly env: NodeJS.ProcessEnv;
  readonly cache: string;
}

/** Figures as docs/log.md has them. */
export const EMBEDDED_SPEED =
  'on one H200 the embedded engine sampled 491 tokens/s (shapes of Qwen2.5-7B, 64 requests at once)';

/** `gpus`: their names, if the caller has them. */
export async function decideEngine(
  configured: EngineConfig,
  overrides: EngineOverrides,
  use: EngineUse,
  place: Place,
  gpus?: readonly string[],
): Promise<EngineDecision> {
  const decided = await decideKind(configured, overrides, { use, place, gpus });
  return use.policies === undefined ? decided : { ...decided, policies: use.policies };
}

async function decideKind(
  configured: EngineConfig,
  overrides: EngineOverrides,
  { use, place, gpus }: { use: EngineUse; place: Place; gpus: readonly string[] | undefined },
): Promise<EngineDecision> {
  const engine = mergeEngineConfig(configured, overrides);
  const { kind } = engine;
  if (engine.url !== null || engine.device === 'cpu') return { kind, reason: null };
  const found = gpus ?? (await findGpus(place.env));
  const [gpu] = found;
  if (gpu === undefined) return { kind, reason: null };
  if (overrides.kind) return { kind, reason: 'as --engine says' };
  if (configured.kind !== null) return { kind, reason: 'as engine.kind in temporal.config.ts says' };
  return planEngine({
    gpu,
    obstacle: obstacleOf(engine, use),
    before: (await use.before?.()) ?? null,
    hasVllm: findGpuVllm(place) !== null,
  });
}

export interface EngineFacts {
  readonly gpu: string;
  /** Why vLLM cannot, or need not, sample. */
  readonly obstacle: string | null;
  readonly before: EngineKind | null;
  readonly hasVllm: boolean;
}

/** Decision on a GPU if no setting names the engine. */
export function planEngine({ gpu, obstacle, before, hasVllm }: EngineFacts): EngineDecision {
  if (obstacle !== null) return { kind: 'embedded', reason: `because ${obstacle}` };
  if (before !== null)
    return { kind: before, reason: 'because the run has been sampled with it so far (--engine changes that)' };
  if (hasVllm) return { kind: 'vllm', reason: `because it samples on a GPU (${gpu}) and vLLM is installed` };
  return {
    kind: 'embedded',
    reason: `because vLLM is not installed: ${EMBEDDED_SPEED}, and published figures of vLLM are several times that; to install it, run: temper setup vllm`,
  };
}

/** For the first lines of a command; null if there is nothing to say. */
export function describeDecision({ kind, reason }: EngineDecision): string | null {
  return reason === null ? null : `engine: ${kind}, ${reason}`;
}

function obstacleOf(engine: EngineSettings, { trained, samples }: EngineUse): string | null {
  if (process.platform !== 'linux') return 'vLLM needs Linux';
  if (!samples) return 'a run of supervised steps alone samples nothing';
  return vllmObstacle(engine, trained);
}
