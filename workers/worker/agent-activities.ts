/** One agent's activities, put together: its file, the store, the engine. */
import type { Contact } from '../../activities/contact.ts';
import { createAgentActivities } from '../../activities/index.ts';
import type { PauseDetector } from '../../activities/pause-detector.ts';
import { badConfig } from '../../core/contract/failures.ts';
import type { PriceTable } from '../../core/numbers/prices.ts';
import { rolloutQueue } from '../../core/names/queues.ts';
import { isAgent, type Agent } from '../../play/agent.ts';
import { connectEngine } from '../../play/connections/engine-connection.ts';
import { checkProgram } from '../../play/programs/check-program.ts';
import { locateScenarios } from '../../play/scenarios.ts';
import { requireJudgeKey } from '../../play/judge/judge-model.ts';
import { openAgentResources } from '../../play/resources/agent-resources.ts';
import { agentCodeSha256, importAgentFile } from '../user-code/agent-code.ts';
import type { Logger } from './logs.ts';
import type { WorkerSettings } from './worker-settings.ts';
import { isRuler } from '../../play/judge/ruler.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { WATCH_MS } from '../../play/resources/lease-holder.ts';
import { endLeases, LeaseWatch } from '../../play/resources/leaked-leases.ts';
import { Leases } from '../../store/records/groups/leases.ts';
import type { Store } from '../../store/store.ts';

export interface WorkerActivities {
  readonly name: string;
  readonly queue: string;
  readonly activities: object;
  close(): Promise<void>;
}

export async function openAgentActivities(
  file: string,
  settings: WorkerSettings & {
    readonly contact: Contact;
    readonly pauses: PauseDetector;
    readonly prices?: PriceTable;
  },
  logger: Logger,
): Promise<WorkerActivities> {
  const { store, contact, pauses, metrics, prices = {} } = settings;
  // Hashed before it is loaded: a file saved in between is noticed at the next start, never the other way round.
  const codeSha256 = await agentCodeSha256(file);
  const exported = await importAgentFile(file);
  if (!isAgent(exported))
    throw badConfig(
      `the agent file ${file} must export defineAgent({ … }) by default; write export default defineAgent({ … })`,
    );
  const agent = locateScenarios(exported, file);
  checkProgram(agent);
  warnOfMissingKey(agent, logger);
  const connected = connectEngine(settings.engine);
  const engine = metrics?.meterEngine(connected, agent.name) ?? connected;
  const ownLogger = logger.child({ agent: agent.name });
  const resources = openAgentResources(agent, store, ownLogger);
  const agents = new Map([[agent.name, { agent, codeSha256, resources }]]);
  const over = new AbortController();
  const sweeping = sweepLeases(agent, store, ownLogger, over.signal);
  return {
    name: agent.name,
    queue: rolloutQueue(await store.id(), agent.name),
    activities: createAgentActivities({ store, engine, agents, contact, pauses, prices, logger: ownLogger }),
    async close() {
      over.abort();
      await resources?.close();
      await sweeping;
      await engine.close();
    },
  };
}

/** It plays without it; only what it plays can't be judged here. */
function warnOfMissingKey({ name, reward }: Agent, logger: Logger): void {
  try {
    if (isRuler(reward)) requireJudgeKey(reward.judge, process.env);
  } catch (error) {
    logger.warn({ agent: name, error: String(error) }, 'this worker cannot judge');
  }
}

/** Between two tries of a teardown that fails. */
const RETRY_MS = 60_000;

/** Ends what dead workers of an agent have left, as long as this one lives: nobody else may come to look. */
async function sweepLeases({ name, resources }: Agent, store: Store, logger: Logger, signal: AbortSignal) {
  if (resources === undefined) return;
  const leases = new Leases(store, name);
  const watch = new LeaseWatch(leases);
  const triedAt = new Map<string, number>();
  const sweep = async (): Promise<void> => {
    const { leases: seen, deadHolders } = await watch.look();
    const isDue = (id: string) => performance.now() - (triedAt.get(id) ?? -Infinity) > RETRY_MS;
    const leaked = seen.filter(({ state, lease }) => state === 'leaked' && isDue(lease.id));
    for (const { lease } of leaked) triedAt.set(lease.id, performance.now());
    for (const { lease, problem } of await endLeases(leases, resources, leaked, deadHolders)) {
      const fields = { lease: lease.id, resource: lease.resource, run: lease.place?.run ?? null };
      if (problem === null) logger.info(fields, 'ended a resource of a dead worker');
      else logger.warn({ ...fields, problem }, 'a resource of a dead worker cannot be ended; it is tried again');
    }
  };
  while (!signal.aborted) {
    await sweep().catch((error: unknown) => logger.warn({ error: String(error) }, 'leases cannot be read'));
    await sleep(WATCH_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
