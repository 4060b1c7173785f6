/** Deployments as commands print them. */
import pLimit from 'p-limit';
import { PROOF_STAGE } from '../outbound/deploy/run-stage.ts';
import {
  listDeployments,
  stageOfDeployment,
  stateOfDeployment,
  type Made,
  type RecordedDeployment,
} from '../store/records/production/deployments.ts';
import { READ_AT_ONCE } from '../store/records/runs/read-runs.ts';
import { listRuns, requireRunFile } from '../store/records/runs/run-reader.ts';
import type { Store } from '../store/store.ts';

/** Of one run, or of all. */
export async function listAllDeployments(store: Store, run: string | null): Promise<ShownDeployment[]> {
  if (run !== null) await requireRunFile(store, run);
  const runs = run === null ? await listRuns(store) : [run];
  const found = await pLimit(READ_AT_ONCE).map(runs, (each) => listDeployments(store, each));
  return found.flat().map(describeDeployment);
}

export type ShownDeployment = ReturnType<typeof describeDeployment>;

export function describeDeployment(deployment: RecordedDeployment) {
  const { run, id, policy, checkpoint, target, options, baseModel, prompts, at, finished, status } = deployment;
  const state = stateOfDeployment(deployment);
  return {
    run,
    id,
    policy,
    adapterSha256: checkpoint.adapterSha256,
    target,
    options,
    baseModel,
    state,
    ...stageOfDeployment(deployment),
    place: placeOf(deployment),
    /** Recorded prompts that the proof sends; null: no proof was asked for. */
    prompts,
    proof: finished.find((each) => each.stage === PROOF_STAGE)?.made ?? null,
    asked: at,
    since: (state === 'deployed' ? finished.at(-1)?.at : status?.at) ?? at,
    made: Object.fromEntries(finished.map((each) => [each.stage, each.made])),
  };
}

/** The outcome of a stage that says best where it is. */
const PLACES = ['model', 'url', 'archive'];

function placeOf({ finished }: RecordedDeployment): string | null {
  for (const { made } of finished.toReversed()) {
    const place = PLACES.map((name) => made[name]).find((value) => typeof value === 'string');
    if (place !== undefined) return place;
  }
  return null;
}

export function describeProof({ prompts, proof }: { readonly prompts: number | null; readonly proof: Made | null }) {
  if (prompts === null) return 'not asked for';
  if (proof === null) return '–';
  const { verdict, detail } = proof;
  return `${String(verdict)}${typeof detail === 'string' ? `: ${detail}` : ''}`;
}
