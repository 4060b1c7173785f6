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
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TemperError } from '../../core/contract/failures.ts';
import { MeasuredAnswers } from '../../outbound/deploy/proof-verdict.ts';
import { proveAnswers, type MeasureRequest } from '../../outbound/deploy/proof.ts';
import type { GgufRequest } from '../../outbound/deploy/targets/target.ts';
import { writeKnownModels } from '../base-models/known-models.ts';
import { cacheFolder } from '../project/folders.ts';
import { exportByPython, GGUF_FILE } from '../python/export-policy.ts';
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

async function measurePolicy(place: WeightsPlace, request: MeasureRequest): Promise<MeasuredAnswers> {
  const { policy, answers, signal } = request;
  // Prompts of held-out scenarios: for this process's user alone, and not for long.
  const folder = await mkdtemp(join(tmpdir(), 'temper-proof-'));
  try {
    const work = join(folder, 'answers.json');
    await writeFile(work, JSON.stringify({ answers }), { mode: 0o600 });
    const flags = { store: place.storeUri, policy, models: writeKnownModels(place.project, place.config), work };
    const failure = `the answers could not be compared with ${policy}`;
    return await askPython(MeasuredAnswers, failure, { ...installation(place), name: 'measure', flags, signal });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeGguf(place: WeightsPlace, request: GgufRequest): Promise<string> {
  const { policy, chatTemplateSha256, folder, quantize, signal } = request;
  const { exported, lastLine } = await exportByPython({
    storeUri: place.storeUri,
    models: writeKnownModels(place.project, place.config),
    policy,
    folder,
    format: 'gguf',
    dtype: quantize === null ? 'float16' : 'float32',
    quantize,
    signal,
    chatTemplateSha256: chatTemplateSha256 ?? undefined,
    ...installation(place),
  });
  if (exported !== null) return join(folder, GGUF_FILE);
  throw new TemperError('EngineFailed', `${policy} could not be merged: ${lastLine}; run temper doctor`);
}
