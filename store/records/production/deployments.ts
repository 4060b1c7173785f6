/**
 * Deployments of a run's checkpoints: what was asked for, what each stage made, and a status for display. A stage's record
 * is write-once, so that a deployment that goes on after a kill repeats no stage that was recorded.
 */
import { z } from 'zod';

import { BlobRef, Checkpoint } from '../../../core/contract/contract.ts';
import type { DeployTargetName } from '../../../core/contract/deploy.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { encodeJson } from '../../bytes/json.ts';
import { deploymentKey, deploymentsPrefix, deploymentStageKey, deploymentStatusKey } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { childNames } from '../children.ts';
import { readStored, tolerant } from '../file-schemas.ts';

const schema = z.literal(RECORD_SCHEMA);
const at = z.iso.datetime();

const DeploymentSchema = z.looseObject({
  schema,
  id: z.string(),
  checkpoint: tolerant(Checkpoint),
  /** `run@step`, with `:policy` for another one than `main`. */
  policy: z.string(),
  target: z.string(),
  options: z.record(z.string(), z.unknown()),
  /** Name of the base model at the target; null if it has none there. */
  baseModel: z.string().nullable(),
  adapter: tolerant(BlobRef),
  adapterConfig: tolerant(BlobRef),
  /** Hash of the chat template that the run brought; null: the base model's own. */
  chatTemplateSha256: z.string().nullable(),
  /** `README.md`. */
  card: z.string(),
  /** Number of recorded prompts that the proof sends; null: no proof was asked for. */
  prompts: z.int().nullable(),
  stages: z.array(z.string()),
  at,
});

/** The deployment that was asked for. */
export interface NewDeployment extends Pick<Deployment, Asked> {
  target: DeployTargetName;
}
type Deployment = z.infer<typeof DeploymentSchema>;
type Asked =
  | 'checkpoint'
  | 'policy'
  | 'options'
  | 'baseModel'
  | 'adapter'
  | 'adapterConfig'
  | 'chatTemplateSha256'
  | 'card'
  | 'prompts'
  | 'stages';

/** The outcome of a stage: ids, names, addresses; never a key. */
const MadeSchema = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));
export type Made = z.infer<typeof MadeSchema>;

const StageSchema = z.looseObject({ schema, made: MadeSchema, at });

const StatusSchema = z.looseObject({
  schema,
  state: z.enum(['running', 'failed']),
  stage: z.string(),
  /** The last failure, or what the stage waits for; null if there is neither. */
  message: z.string().nullable(),
  at,
});
export type DeploymentStatus = z.infer<typeof StatusSchema>;

type NewStatus = Pick<DeploymentStatus, 'state' | 'stage' | 'message'>;

interface StageRecord {
  readonly stage: string;
  readonly made: Made;
  readonly at: string;
}

export interface RecordedDeployment extends Deployment {
  readonly run: string;
  /** Finished stages, in their order. */
  readonly finished: readonly StageRecord[];
  readonly status: DeploymentStatus | null;
}

/** The same request has the same id, `step12.together.3fa9c1d2`; `number` tells repeated ones apart, from 1. */
export function deploymentId(asked: NewDeployment, number: number): string {
  const { checkpoint, policy, target, options, baseModel } = asked;
  const place = checkpoint.branch === 0 ? 'step' : `branch${checkpoint.branch}-step`;
  const hash = hashOf({ manifest: checkpoint.manifestSha256, policy, target, options, baseModel, number });
  return `${place}${checkpoint.step}.${target}.${hash.slice(0, 8)}`;
}

/** Returns the id under which the store has it, now or since an earlier request. */
export async function recordDeployment(
  store: Store,
  run: string,
  asked: NewDeployment,
  number: number,
): Promise<string> {
  const id = deploymentId(asked, number);
  const file = { schema: RECORD_SCHEMA, id, ...asked, at: new Date().toISOString() };
  await store.publish(deploymentKey(run, id), encodeJson(file));
  return id;
}

/** Null if there is none. */
export async function readDeployment(store: Store, run: string, id: string): Promise<RecordedDeployment | null> {
  const file = await readStored(store, deploymentKey(run, id), DeploymentSchema);
  if (file === null) return null;
  const finished: StageRecord[] = [];
  for (const stage of file.stages) {
    const record = await readStored(store, deploymentStageKey(run, id, stage), StageSchema);
    if (record !== null) finished.push({ stage, made: record.made, at: record.at });
  }
  return { ...file, run, finished, status: await readStored(store, deploymentStatusKey(run, id), StatusSchema) };
}

/** Deployments of one run, the oldest first. */
export async function listDeployments(store: Store, run: string): Promise<RecordedDeployment[]> {
  const ids = await childNames(store, deploymentsPrefix(run));
  const found = await Promise.all(ids.map((id) => readDeployment(store, run, id)));
  return found.filter((each) => each !== null).toSorted((left, right) => (left.at < right.at ? -1 : 1));
}

export async function recordStage(store: Store, run: string, id: string, stage: string, made: Made): Promise<void> {
  const record = { schema: RECORD_SCHEMA, made, at: new Date().toISOString() };
  await store.publish(deploymentStageKey(run, id, stage), encodeJson(record));
}

export async function showStatus(store: Store, run: string, id: string, status: NewStatus): Promise<void> {
  const file = { schema: RECORD_SCHEMA, ...status, at: new Date().toISOString() };
  await store.replace(deploymentStatusKey(run, id), encodeJson(file));
}

export type DeploymentState = 'deployed' | 'running' | 'failed';

/** A failure counts for as long as its stage has not been finished by a later try. */
export function stateOfDeployment({ stages, finished, status }: RecordedDeployment): DeploymentState {
  const next = stages[finished.length];
  if (next === undefined) return 'deployed';
  return status?.state === 'failed' && status.stage === next ? 'failed' : 'running';
}

/** The stage that is next, and what it waits for or why it failed; null once all are finished. */
export function stageOfDeployment({ stages, finished, status }: RecordedDeployment): NextStage {
  const stage = stages[finished.length] ?? null;
  return { stage, message: status !== null && status.stage === stage ? status.message : null };
}

interface NextStage {
  readonly stage: string | null;
  readonly message: string | null;
}

/** They still read the weights of their checkpoints. */
export async function unfinishedDeployments(store: Store, run: string): Promise<RecordedDeployment[]> {
  return (await listDeployments(store, run)).filter((each) => stateOfDeployment(each) === 'running');
}
