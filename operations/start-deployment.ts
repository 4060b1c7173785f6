/** Asks for a deployment and starts its workflow. */
import { deploymentWorkflowId, outboundQueue, storeQueue } from '../core/names/queues.ts';
import {
  deploymentId,
  readDeployment,
  recordDeployment,
  stateOfDeployment,
  type NewDeployment,
  type RecordedDeployment,
} from '../store/records/production/deployments.ts';
import type { Store } from '../store/store.ts';
import { loadConfig } from '../workers/config/config.ts';
import { patiently, type TemporalClient } from '../workers/connection/connection.ts';
import type { deployCheckpoint as deployWorkflow } from '../workflows/deploy.ts';
import type { DeployInput } from './deployments.ts';
import { describeDeployment, type ShownDeployment } from './describe-deployment.ts';
import type { Place } from './operation.ts';
import { requireServer } from './server.ts';
import { planDeployment } from './plan-deployment.ts';

export async function sayDeployment(place: Place, input: DeployInput): Promise<string> {
  const { policy, target, options, stages } = await planDeployment(input, place, await place.store());
  const given = Object.entries(options).map(([name, value]) => `${name} ${String(value)}`);
  const told = given.length === 0 ? '' : ` (${given.join(', ')})`;
  return `${policy} is deployed to ${target}${told}, in the stages ${stages.join(', ')}. A worker does it, with the keys in its environment, and continues after a crash.`;
}

export async function deployCheckpoint(place: Place, input: DeployInput): Promise<ShownDeployment> {
  const server = await requireServer(place);
  try {
    const recorded = await askDeployment(place, input);
    if (stateOfDeployment(recorded) !== 'deployed') await startDeployment(place, server, recorded);
    return describeDeployment(recorded);
  } finally {
    await server.close();
  }
}

export async function askDeployment(place: Place, input: DeployInput): Promise<RecordedDeployment> {
  const store = await place.store();
  const asked = await planDeployment(input, place, store);
  const { run } = asked.checkpoint;
  const { again } = input;
  const id = await recordDeployment(store, run, asked, await numberOf(store, run, asked, again));
  return (await readDeployment(store, run, id))!;
}

/** The newest of the same request, or the next one. */
async function numberOf(store: Store, run: string, asked: NewDeployment, isAgain: boolean): Promise<number> {
  let last = 0;
  while ((await readDeployment(store, run, deploymentId(asked, last + 1))) !== null) last += 1;
  return isAgain ? last + 1 : Math.max(last, 1);
}

/** Starts its workflow, or joins it. */
export async function startDeployment(
  { project, env, store: openStore }: Place,
  { client }: TemporalClient,
  { run, id, policy, target, stages }: RecordedDeployment,
): Promise<void> {
  const { queues } = await loadConfig(project, env);
  const storeId = await (await openStore()).id();
  await patiently(
    () =>
      client.workflow.start<typeof deployWorkflow>('deployCheckpoint', {
        workflowId: deploymentWorkflowId(storeId, run, id),
        taskQueue: storeQueue(storeId, queues.workflows),
        args: [{ run, id, stages, queue: outboundQueue(storeId) }],
        workflowIdConflictPolicy: 'USE_EXISTING',
        staticSummary: `${policy} to ${target}`,
      }),
    { limitMs: 30_000 },
  );
}
