/**
 * Trackers against the servers themselves, where there are some: `mlflow server` (3.17 was tried) at TEMPER_MLFLOW_URL,
 * `trackio show` (0.43 was tried) at TEMPER_TRACKIO_URL with its token in TRACKIO_WRITE_TOKEN.
 */
import { expect, test } from 'vitest';
import { TrackerSettings } from '../../../core/contract/outbound.ts';
import { openTracker } from '../../../outbound/track/open-tracker.ts';
import { startTrackedRun, deliverAll } from './tracked-run.ts';

const { TEMPER_MLFLOW_URL: mlflowUrl, TEMPER_TRACKIO_URL: trackioUrl } = process.env;

async function tellRun(settings: object) {
  const tracked = await startTrackedRun(`demo-${Date.now().toString(36)}`);
  const target = openTracker(TrackerSettings.parse(settings), {
    store: tracked.store,
    project: tracked.folder,
    env: process.env,
    fetch,
  });
  await tracked.evaluate(0);
  for (let step = 1; step <= 6; step++) {
    await tracked.step();
    if (step === 3) await tracked.evaluate();
    await deliverAll(tracked, target, { tries: 0 });
  }
  // Delivered once more from the start, as after a cursor that was lost.
  await tracked.store.removeFolder(`runs/${tracked.run}/outbound`);
  await deliverAll(tracked, target, { tries: 0 });
  await tracked.rollBack(4);
  await tracked.step({ reward: 7 });
  await deliverAll(tracked, target, { tries: 0, outcome: 'finished' });
  return tracked;
}

async function ask(url: string, body: object | null): Promise<Record<string, unknown>> {
  const init = body === null ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(url, { headers: { 'content-type': 'application/json' }, ...init });
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
}

test.runIf(mlflowUrl)('MLflow holds each step once, in order, with its state', { timeout: 120_000 }, async () => {
  const { run } = await tellRun({ kind: 'mlflow', url: mlflowUrl, experiment: 'temper' });
  const api = `${mlflowUrl}/api/2.0/mlflow`;
  const { experiment } = await ask(`${api}/experiments/get-by-name?experiment_name=temper`, null);
  const { runs } = await ask(`${api}/runs/search`, {
    experiment_ids: [(experiment as { experiment_id: string }).experiment_id],
    filter: `tags.\`temper.run\` = '${run}'`,
  });
  const found = runs as { info: { run_id: string; run_name: string; status: string } }[];
  const names = found.map(({ info }) => `${info.run_name} ${info.status}`).toSorted();
  expect(names).toEqual([`${run} FINISHED`, `${run}~1 FINISHED`]);
  const id = found.find(({ info }) => info.run_name.endsWith('~1'))?.info.run_id;
  const { metrics } = await ask(`${api}/metrics/get-history?run_id=${id}&metric_key=train/reward`, null);
  const rows = metrics as { step: number; value: number }[];
  expect(rows.map(({ step }) => step).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5]);
  expect(rows.find(({ step }) => step === 5)?.value).toBe(7);
});

test.runIf(trackioUrl)('Trackio holds each step once, in order', { timeout: 120_000 }, async () => {
  const { run } = await tellRun({ kind: 'trackio', url: trackioUrl, project: 'temper' });
  const { data: runs } = await ask(`${trackioUrl}/api/get_runs_for_project`, { project: 'temper' });
  expect(JSON.stringify(runs)).toContain(`${run}~1`);
  const { data } = await ask(`${trackioUrl}/api/get_logs`, { project: 'temper', run: `${run}~1` });
  const rows = (data as { step: number; 'train/reward'?: number }[]).filter((row) => row['train/reward'] !== undefined);
  expect(rows.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5]);
  expect(rows.at(-1)?.['train/reward']).toBe(7);
});
