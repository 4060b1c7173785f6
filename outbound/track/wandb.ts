/**
 * Weights & Biases without its Python client: `upsertBucket` opens a run, `file_stream` writes rows of its history. The
 * number of a row is its offset there, so that a repeated delivery writes the same rows again.
 */
import type { WandbSettings } from '../../core/contract/outbound.ts';
import { callHttp } from '../../core/text/http.ts';
import type { DeliveryRow, Target, Delivery, EvalRow } from '../target.ts';
import { latestMetrics, describeConfig, shownName, trackerRunId, type TrackerPlace } from './tracker-run.ts';
import { metricsOfRow, STEP_METRIC, bestEvaluation } from './metric-names.ts';
import { basicKey, openWandbApi, UPSERT_RUN, WANDB_CLOUD, wandbGraphql, type WandbApi } from './wandb-graphql.ts';
import { manifestKey } from '../../store/layout.ts';
import { PEFT_CONFIG_FILE, PEFT_WEIGHTS_FILE } from '../../store/records/runs/peft-adapter.ts';
import { readManifest } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { logArtifact } from './wandb-artifact.ts';

/** Rows of one request. */
const BATCH = 200;
const HISTORY = 'wandb-history.jsonl';
const SUMMARY = 'wandb-summary.json';

/** `*` is drawn over the training step: rows of evaluations have a number of their own. Field numbers of W&B's MetricRecord. */
const METRIC_DEFINITIONS = [
  { '1': STEP_METRIC, '6': [3] },
  { '2': '*', '5': 1, '6': [1] },
];

export function createWandbTracker(settings: WandbSettings, place: TrackerPlace): Target {
  const api = (delivery: Delivery): WandbApi =>
    openWandbApi(settings.baseUrl, place.env, { fetch: place.fetch, signal: delivery.signal });
  return {
    name: settings.name,
    batch: BATCH,
    onRollback: 'restart',
    async begin(delivery) {
      const project = settings.project ?? (place.env['WANDB_PROJECT'] || delivery.run.config.agent);
      const bucket = await upsertRun(api(delivery), delivery, { settings, project, entity: entityOf(settings, place) });
      return {
        entity: bucket.project.entity.name,
        project: bucket.project.name,
        id: bucket.name,
        url: `${appUrl(api(delivery).baseUrl)}/${bucket.project.entity.name}/${bucket.project.name}/runs/${bucket.name}`,
      };
    },
    async deliver(delivery, rows) {
      const content = rows.map((row) => JSON.stringify(historyRow(row, delivery, metricsOfRow(row))));
      const summary = JSON.stringify({ ...latestMetrics(delivery), _step: delivery.rows + rows.length - 1 });
      const files = { [HISTORY]: { offset: delivery.rows, content }, [SUMMARY]: { offset: 0, content: [summary] } };
      await stream(api(delivery), delivery, { files });
      if (settings.artifacts) await logCheckpoints(api(delivery), place.store, delivery, rows);
    },
    // A run whose stream is silent for five minutes is shown as crashed.
    async beat(delivery) {
      await stream(api(delivery), delivery, { files: {} });
    },
    async end(delivery, outcome) {
      if (outcome === 'rolled back')
        await upsertRun(api(delivery), delivery, { settings, ...placeOf(delivery), tag: 'rolled-back' });
      await stream(api(delivery), delivery, { files: {}, complete: true, exitcode: EXIT_CODES[outcome] });
    },
  };
}

/** W&B shows 0 as finished and all others as failed; 255 is that of an interrupted run. */
const EXIT_CODES = { finished: 0, stopped: 0, 'rolled back': 0, cancelled: 255, failed: 1, crashed: 1 } as const;

function entityOf({ entity }: WandbSettings, { env }: TrackerPlace): string | null {
  return entity ?? (env['WANDB_ENTITY'] || null);
}

function placeOf({ memory }: Delivery): { project: string; entity: string | null } {
  return { project: memory['project'] ?? '', entity: memory['entity'] ?? null };
}

interface RunPlace {
  readonly settings: WandbSettings;
  readonly project: string;
  readonly entity: string | null;
  readonly tag?: string;
}

interface Bucket {
  readonly name: string;
  readonly project: { readonly name: string; readonly entity: { readonly name: string } };
}

/** Finds or makes the run of this id. */
async function upsertRun(
  api: WandbApi,
  delivery: Delivery,
  { settings, project, entity, tag }: RunPlace,
): Promise<Bucket> {
  const config = Object.fromEntries(Object.entries(describeConfig(delivery)).map(([name, value]) => [name, { value }]));
  const { upsertBucket } = await wandbGraphql<{ upsertBucket: { bucket: Bucket } }>(api, UPSERT_RUN, {
    name: trackerRunId(delivery),
    displayName: shownName(delivery),
    project,
    entity,
    groupName: delivery.run.group ?? delivery.run.run,
    jobType: 'train',
    tags: [...settings.tags, ...(tag === undefined ? [] : [tag])],
    config: JSON.stringify({ ...config, _wandb: { value: { m: METRIC_DEFINITIONS } } }),
  });
  return upsertBucket.bucket;
}

function historyRow(row: DeliveryRow, { run }: Delivery, metrics: Readonly<Record<string, number>>): object {
  const seconds = row.at / 1000;
  return { _step: row.number, _timestamp: seconds, _runtime: seconds - run.beganAt / 1000, ...metrics };
}

async function stream({ caller, baseUrl }: WandbApi, { memory }: Delivery, json: object): Promise<void> {
  const path = ['entity', 'project', 'id'].map((part) => encodeURIComponent(memory[part] ?? '')).join('/');
  const url = `${baseUrl}/files/${path}/file_stream`;
  await callHttp(caller, { method: 'POST', url, json, headers: basicKey(caller) });
}

/** Pages of the cloud have an address of their own; a server has one for both. */
function appUrl(baseUrl: string): string {
  return baseUrl === WANDB_CLOUD ? 'https://wandb.ai' : baseUrl;
}

/** Adapters of evaluated checkpoints as artifacts of type `lora`, with the aliases `step12`, `latest` and `best`. */
async function logCheckpoints(
  api: WandbApi,
  store: Store,
  delivery: Delivery,
  rows: readonly DeliveryRow[],
): Promise<void> {
  for (const row of rows) if (row.kind === 'evaluation' && row.step > 0) await logCheckpoint(api, store, delivery, row);
}

/** A step that trained nothing has no checkpoint; a pruned one has no weights any more. */
async function logCheckpoint(
  api: WandbApi,
  store: Store,
  delivery: Delivery,
  { branch, step }: EvalRow,
): Promise<void> {
  const place = { run: delivery.run.run, branch, step };
  if ((await store.read(manifestKey(place))) === null) return;
  const manifest = await readManifest(store, place);
  if (manifest === null || manifest.fullFineTuning === true || (await store.blobBytes(manifest.adapter)) === null)
    return;
  const isBest = bestEvaluation(delivery.evals)?.step === step;
  await logArtifact(api, {
    entity: delivery.memory['entity'] ?? '',
    project: delivery.memory['project'] ?? '',
    runId: trackerRunId(delivery),
    name: `${shownName(delivery).replaceAll('~', '-branch-')}-lora`,
    type: 'lora',
    metadata: { 'wandb.base_model': manifest.baseModel, step, adapter_sha256: manifest.adapter.sha256 },
    aliases: [`step${step}`, 'latest', ...(isBest ? ['best'] : [])],
    files: [
      { path: PEFT_CONFIG_FILE, bytes: await store.getBlob(manifest.adapterConfig) },
      { path: PEFT_WEIGHTS_FILE, bytes: await store.getBlob(manifest.adapter) },
    ],
    storageRegion: null,
  });
}
