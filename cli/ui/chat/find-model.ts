/** The model that a chat or a replay names: a checkpoint, a run's base model, or a hosted model. */
import { badConfig, type TemperError } from '../../../core/contract/failures.ts';
import { parseTrainedName } from '../../../core/names/policy-name.ts';
import type { RolloutConfig } from '../../../core/contract/contract.ts';
import {
  findHostedModel,
  PROVIDER_NAMES,
  type Environment,
  type HostedModel,
} from '../../../play/connections/providers.ts';
import { findConfiguredCheckpoint, findTrainedPolicy } from '../../../store/records/runs/find-policy.ts';
import { readManifest } from '../../../store/records/runs/run-reader.ts';
import type { Store } from '../../../store/store.ts';
import type { LoadedPolicy } from '../../players/start-policy-engine.ts';

/** Answered by Temper's own engine. */
export interface EngineModel {
  readonly kind: 'engine';
  /** For people. */
  readonly title: string;
  /** The engine's name for it. */
  readonly model: string;
  /** Null: the base model alone. */
  readonly adapterSha256: string | null;
  readonly rollout: RolloutConfig;
  /** Its base model, and how that was loaded when the checkpoint was trained. */
  readonly trained: LoadedPolicy;
}

export interface HostedChatModel {
  readonly kind: 'hosted';
  readonly title: string;
  readonly hosted: HostedModel;
}

export type FoundModel = EngineModel | HostedChatModel;

const BASE = 'base:';

/** Whoever has a key of `temper ui` must not choose where this machine sends requests: addresses are in the environment. */
export async function findModel(store: Store, name: string, env: Environment): Promise<FoundModel> {
  if (/^https?:/i.test(name)) throw unknownModel(name);
  const hosted = findHostedModel(name, env);
  if (hosted !== null) return { kind: 'hosted', title: hosted.name, hosted };
  if (name.startsWith(BASE)) return findBase(store, name);
  const wanted = parseTrainedName(name);
  if (wanted === null) throw unknownModel(name);
  const trained = await findTrainedPolicy(store, wanted);
  const { name: model, adapter, config } = trained;
  return { kind: 'engine', title: model, model, adapterSha256: adapter.sha256, rollout: config.rollout, trained };
}

/** The run's first commit tells it: its manifest stays when weights are pruned. */
async function findBase(store: Store, name: string): Promise<EngineModel> {
  const named = parseTrainedName(name.slice(BASE.length));
  if (named === null) throw unknownModel(name);
  const { checkpoint, config } = await findConfiguredCheckpoint(store, { run: named.run, branch: null, step: 0 });
  const manifest = (await readManifest(store, checkpoint))!;
  const { baseModel } = manifest;
  const trained = { name: baseModel, manifest, config };
  const title = `base model ${baseModel} of ${named.run}`;
  return { kind: 'engine', title, model: baseModel, adapterSha256: null, rollout: config.rollout, trained };
}

function unknownModel(name: string): TemperError {
  const rule = `the model must be a checkpoint such as demo@12, a base model such as base:demo, or a hosted model (${PROVIDER_NAMES.join(', ')})`;
  return badConfig(`${rule}, got ${JSON.stringify(name.slice(0, 200))}; name another model`);
}
