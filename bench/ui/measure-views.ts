/** How fast `temper ui` answers on a large store, and what it needs for it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../../store/bytes/open-store.ts';
import { listRuns } from '../../store/records/runs/run-reader.ts';
import type { AttemptsView } from '../../views/api/attempt-views.ts';
import { median, quantile } from '../bench.ts';
import { seededRandom } from './made-attempts.ts';
import { PeakMemory } from './peak-memory.ts';
import { startUi, type UiPlace, type UiProcess } from './ui-process.ts';

const SAMPLES = 20;
const INDEX_POLL_MS = 200;
/** It looks for a Temporal server meanwhile. */
const IDLE_MS = 5000;

export async function measureViews(place: UiPlace): Promise<object> {
  const [run] = await listRuns(await openStore(place.store));
  if (run === undefined) throw new Error(`${place.store} has no run; make one with bench/ui-store.ts`);
  const server = await startUi(place);
  const memory = new PeakMemory(server.process);
  try {
    await sleep(IDLE_MS);
    memory.endPhase('start');
    const [firstViewMs, firstViewBytes] = await timed(() => server.openFirstView());
    const [firstIndexMs, attempts] = await timed(() => awaitIndex(server, run));
    memory.endPhase('first index');
    const views = await timeViews(server, run, attempts);
    memory.endPhase('views');
    const all = Object.values(views).flat();
    for (const [name, times] of Object.entries(views))
      console.log(
        `  ${name.padEnd(28)} ${median(times).toFixed(0)} ms, 95 % within ${quantile(times, 0.95).toFixed(0)} ms`,
      );
    return {
      program: place.program,
      attempts,
      firstViewMs,
      firstViewBytes,
      firstIndexSeconds: firstIndexMs / 1000,
      laterIndexMs: await timeLaterIndex(place, run),
      viewMsMedian: median(all),
      viewMs95: quantile(all, 0.95),
      views: Object.fromEntries(Object.entries(views).map(([name, times]) => [name, Math.round(median(times))])),
      peakMiB: memory.phases,
      serverMiBLargest: Math.max(...Object.values(memory.phases)),
    };
  } finally {
    await server.stop();
  }
}

/** Number of attempts that it has in the end. */
async function awaitIndex(server: UiProcess, run: string): Promise<number> {
  for (;;) {
    const { total, index } = (await server.ask(`runs/${run}/attempts?limit=1`)) as AttemptsView;
    if (index.isComplete) return total;
    await sleep(INDEX_POLL_MS);
  }
}

/** A new process, which reads what the first one has left. */
async function timeLaterIndex(place: UiPlace, run: string): Promise<number> {
  const server = await startUi(place);
  try {
    return (await timed(() => awaitIndex(server, run)))[0];
  } finally {
    await server.stop();
  }
}

async function timeViews(server: UiProcess, run: string, attempts: number): Promise<Record<string, number[]>> {
  const random = seededRandom(1);
  const last = ((await server.ask('runs')) as { run: string; step: number }[])[0]!.step;
  const paths = await examplePaths(server, run, { last, attempts }, random);
  const times: Record<string, number[]> = {};
  for (let sample = 0; sample < SAMPLES; sample++)
    for (const [name, path] of Object.entries(paths))
      (times[name] ??= []).push((await timed(() => server.ask(path())))[0]);
  return times;
}

/** Another step, group or attempt each time. */
async function examplePaths(
  server: UiProcess,
  run: string,
  { last, attempts }: { readonly last: number; readonly attempts: number },
  random: () => number,
): Promise<Record<string, () => string>> {
  const { rows } = (await server.ask(`runs/${run}/attempts?kind=train&limit=500`)) as AttemptsView;
  const row = () => rows[Math.floor(random() * rows.length)]!;
  const step = () => 1 + Math.floor(random() * last);
  const of = `runs/${run}`;
  return {
    runs: () => 'runs',
    run: () => of,
    curve: () => `${of}/curve`,
    lanes: () => `${of}/lanes?from=${last - 20}&to=${last}`,
    checkpoints: () => `${of}/checkpoints`,
    step: () => `${of}/steps/${step()}`,
    group: () => `${of}/groups/0.${step()}.0`,
    attempt: () => `${of}/attempts/${row().id}`,
    tokens: () => `${of}/attempts/${row().id}/tokens`,
    raw: () => `${of}/attempts/${row().id}/raw`,
    'attempts, a page': () => `${of}/attempts?offset=${Math.floor(random() * (attempts - 100))}`,
    'attempts, by reward and tool': () => `${of}/attempts?minReward=0.5&tool=search&sort=-tokens`,
    'attempts, a common text': () => `${of}/attempts?text=refund budget`,
    'attempts, an absent text': () => `${of}/attempts?text=absent${Math.floor(1e6 * random())}`,
  };
}

async function timed<T>(work: () => Promise<T>): Promise<[milliseconds: number, result: T]> {
  const startedAt = performance.now();
  const result = await work();
  return [performance.now() - startedAt, result];
}
