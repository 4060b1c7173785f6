/** Activities that tell other systems of runs, on a queue of their own: any worker process of the store takes them. */
import type { Client } from '@temporalio/client';
import type { Contact } from '../../activities/contact.ts';
import { createDeployActivities } from '../../activities/deploy.ts';
import type { PauseDetector } from '../../activities/pause-detector.ts';
import { createTrackActivities } from '../../activities/track.ts';
import { outboundQueue, runWorkflowId } from '../../core/names/queues.ts';
import type { Store } from '../../store/store.ts';
import { settingsOfTarget } from '../config/targets.ts';
import { openTarget } from '../tracking/open-target.ts';
import type { TemperConfig } from '../config/config.ts';
import type { Logger } from './logs.ts';
import { isWorkflowRunning } from '../connection/connection.ts';
import { join } from 'node:path';
import { MeasuredAnswers } from '../../outbound/deploy/proof-verdict.ts';
import { proveAnswers, type MeasureRequest } from '../../outbound/deploy/proof.ts';
import type { GgufRequest } from '../../outbound/deploy/targets/target.ts';
import { writeKnownModels } from '../base-models/known-models.ts';
import { cacheFolder } from '../project/folders.ts';
import { Exported, GGUF_FILE } from '../python/export-policy.ts';
import { askPython } from '../python/run-program.ts';

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
  const weights = { project, config, storeUri: store.uri, env };
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
      ...createDeployActivities({
        store,
        logger,
        contact,
        pauses,
        env,
        prove: (request) => proveAnswers((measuring) => measurePolicy(weights, measuring), request),
        writeGguf: (request) => writeGguf(weights, request),
      }),
    },
  };
}

/** Measurements and files that deployments need of weights, made by the GPU worker's Python on this host. */
interface WeightsPlace {
  readonly project: string;
  readonly config: Pick<TemperConfig, 'models'>;
  readonly storeUri: string;
  readonly env: NodeJS.ProcessEnv;
}

const ignore = (): void => undefined;
const installation = ({ env }: WeightsPlace) => ({ env, cache: cacheFolder(env), onEvent: ignore });
const committed = ({ project, config, storeUri }: WeightsPlace, policy: string) => ({
  store: storeUri,
  policy,
  models: writeKnownModels(project, config),
});

async function measurePolicy(place: WeightsPlace, request: MeasureRequest): Promise<MeasuredAnswers> {
  const { policy, answers, signal } = request;
  const input = { ...committed(place, policy), answers };
  const failure = `the answers could not be compared with ${policy}`;
  return askPython(MeasuredAnswers, failure, { ...installation(place), name: 'measure', input, signal });
}

async function writeGguf(place: WeightsPlace, request: GgufRequest): Promise<string> {
  const { policy, chatTemplateSha256, folder, quantize, signal } = request;
  const dtype = quantize === null ? 'float16' : 'float32';
  const bits = { dtype, quantize: quantize ?? undefined } as const;
  const input = { ...committed(place, policy), folder, format: 'gguf', ...bits, chatTemplateSha256 } as const;
  const failure = `${policy} could not be merged`;
  await askPython(Exported, failure, { ...installation(place), name: 'export', input, signal });
  return join(folder, GGUF_FILE);
}
