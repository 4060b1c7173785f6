/** Deployments as commands print them. */
import { PROOF_STAGE } from '../../outbound/deploy/run-stage.ts';
import { stateOfDeployment, type Made, type RecordedDeployment } from '../../store/records/production/deployments.ts';

/** The outcome of a stage that says best where it is. */
const PLACES = ['model', 'url', 'archive'];

function placeOf({ finished }: RecordedDeployment): string | null {
  for (const { made } of finished.toReversed()) {
    const place = PLACES.map((name) => made[name]).find((value) => typeof value === 'string');
    if (place !== undefined) return place;
  }
  return null;
}

function proofOf({ finished }: RecordedDeployment): Made | null {
  return finished.find(({ stage }) => stage === PROOF_STAGE)?.made ?? null;
}

export function describePlace(deployment: RecordedDeployment): string {
  return placeOf(deployment) ?? '–';
}

export function describeProof(deployment: RecordedDeployment): string {
  if (deployment.prompts === null) return 'not asked for';
  const proof = proofOf(deployment);
  if (proof === null) return '–';
  const { verdict, detail } = proof;
  return `${String(verdict)}${typeof detail === 'string' ? `: ${detail}` : ''}`;
}

export function deploymentJson(deployment: RecordedDeployment): object {
  const { run, id, policy, checkpoint, target, options, baseModel, at, stages, finished, status } = deployment;
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
    stage: stages[finished.length] ?? null,
    message: state === 'deployed' ? null : (status?.message ?? null),
    place: placeOf(deployment),
    proof: proofOf(deployment),
    asked: at,
    since: state === 'deployed' ? (finished.at(-1)?.at ?? at) : null,
    made: Object.fromEntries(finished.map(({ stage, made }) => [stage, made])),
  };
}
