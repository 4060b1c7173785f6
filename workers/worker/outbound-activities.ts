/** Activities that tell other systems of runs, on a queue of their own: any worker process of the store takes them. */
import type { Client } from '@temporalio/client';
import type { Contact } from '../../activities/contact.ts';
import { createDeployActivities } from '../../activities/deploy.ts';
import type { PauseDetector } from '../../activities/pause-detector.ts';
import { createTrackActivities } from '../../activities/track.ts';
import { outboundQueue, runWorkflowId } from '../../core/queues.ts';
import type { Store } from '../../store/store.ts';
import { settingsOfTarget } from '../config/targets.ts';
import { openTarget } from '../tracking/open-target.ts';
import type { TemperConfig } from '../config/config.ts';
import { openWeights } from './deployed-weights.ts';
import type { Logger } from './logs.ts';
import { isWorkflowRunning } from '../connection/is-workflow-running.ts';

export interface OutboundWork {
  readonly project: string;
  readonly config: TemperConfig;
  readonly store: Store;
  readonly client: Client;
  readonly contact: Contact;
  readonly pauses: PauseDetector;
  /** The environment with the keys of trackers. */
  readonly env: NodeJS.ProcessEnv;
  readonly logger: Logger;
}

export interface OutboundActivities {
  readonly queue: string;
  readonly activities: object;
}

export async function openOutboundActivities(work: OutboundWork): Promise<OutboundActivities> {
  const { project, config, store, client, contact, pauses, env, logger } = work;
  const storeId = await store.id();
  const weights = openWeights({ project, config, storeUri: store.uri, env });
  const place = { store, project, env, fetch: globalThis.fetch };
  return {
    queue: outboundQueue(storeId),
    activities: {
      ...createTrackActivities({
        store,
        logger,
        contact,
        pauses,
        openTarget: (name) => openTarget(settingsOfTarget(config, name), place),
        isRunning: (run) => isWorkflowRunning(client, runWorkflowId(storeId, run)),
      }),
      ...createDeployActivities({ store, logger, contact, pauses, env, ...weights }),
    },
  };
}
