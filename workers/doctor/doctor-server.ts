/** The doctor's look at the Temporal server. */
import { rolloutQueue, storeQueue } from '../../core/names/queues.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { attempt, notRunning, unknown, type DoctorCheck, type Patient } from './check.ts';
import { connectClient, type TemporalClient } from '../connection/connection.ts';
import { storeUri } from '../project/folders.ts';
import { missingSearchAttributes } from '../connection/namespace.ts';
import { countPollers } from '../connection/pollers.ts';

/** Everything that only a reachable server can say. */
export async function checkServer(patient: Patient): Promise<DoctorCheck[]> {
  const { target, env } = patient;
  if (target === null) return [notRunning('Temporal server')];
  let client: TemporalClient | null = null;
  const reached = await attempt('Temporal server', async () => {
    client = await connectClient(target, env);
    return `${target.address} answers`;
  });
  const connected = client as TemporalClient | null;
  if (connected === null) return [reached];
  try {
    return [
      reached,
      await checkNamespace(connected),
      await checkSearchAttributes(connected),
      ...(await checkQueues(connected, patient)),
    ];
  } finally {
    await connected.close();
  }
}

function checkNamespace({ connection, namespace }: TemporalClient): Promise<DoctorCheck> {
  return attempt('namespace', async () => {
    const { config } = await connection.workflowService.describeNamespace({ namespace });
    const days = Math.round(Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) / 86_400);
    return `${namespace}, finished runs are kept for ${days} days`;
  });
}

function checkSearchAttributes(client: TemporalClient): Promise<DoctorCheck> {
  return attempt('search attributes', async () => {
    const missing = await missingSearchAttributes(client);
    if (missing.length === 0) return 'all registered';
    throw new Error(
      `${missing.join(', ')} missing; run temporal operator search-attribute create --namespace ${client.namespace} --name … --type …`,
    );
  });
}

/** A queue without pollers waits silently: the most common reason for a stuck run. */
async function checkQueues(
  client: TemporalClient,
  { config, folders, agents, project }: Patient,
): Promise<DoctorCheck[]> {
  const opened = openStore(storeUri(config.store, folders));
  // The check of the store says why.
  const storeId = await opened.then((store) => store.id()).catch(() => null);
  await opened.then((store) => store.close()).catch(() => undefined);
  if (storeId === null) {
    const detail = 'their names contain the id of the store, which cannot be read';
    return [unknown('queues', detail, 'make the store available')];
  }
  const queues = [
    [storeQueue(storeId, config.queues.workflows), 'workflow', 'start temper dev or temper worker'],
    [storeQueue(storeId, config.queues.gpu), 'activity', 'start a GPU worker, or temper dev'],
    ...agents.map(
      (agent) =>
        [
          rolloutQueue(storeId, agent),
          'activity',
          `start temper worker --agent FILE in ${project}, or temper train`,
        ] as const,
    ),
  ] as const;
  return Promise.all(
    queues.map(([name, kind, remedy]) =>
      attempt(`queue ${name}`, async () => {
        const pollers = await countPollers(client, name, kind);
        if (pollers === 0) throw new Error(`no worker polls it; ${remedy}`);
        return `${pollers} ${pollers === 1 ? 'worker polls' : 'workers poll'} it`;
      }),
    ),
  );
}
