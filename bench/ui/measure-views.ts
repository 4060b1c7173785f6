/** How fast `temper ui` answers on a large store, and what it needs for it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../../store/bytes/open-store.ts';
import { listRuns } from '../../store/records/run-reader.ts';
import type { AttemptsView } from '../../views/api/attempt-views.ts';
import { median, quantile } from '../bench.ts';
import { watchMemory } from '../long.ts';
import { seededRandom } from './made-attempts.ts';
import { startUi, type UiProcess } from './ui-process.ts';

const SAMPLES = 20;
const INDEX_POLL_MS = 200;

export async function measureViews(folder: string, cache: string): Promise<object> {
  const [run] = await listRuns(await openStore(folder));
  if (run === undefined) throw new Error(`${folder} has no run; make one with bench/ui-store.ts`);
  const server = await startUi(folder, cache, cache);
  const memory = watchMemory(server.process);
  try {
    const [firstViewMs, firstViewBytes] = await timed(() => server.openFirstView());
    const [firstIndexMs, attempts] = await timed(() => awaitIndex(server, run));
    const views = await timeViews(server, run, attempts);
    const all = Object.values(views).flat();
    for (const [name, times] of Object.entries(views))
      console.log(
        `  ${name.padEnd(28)} ${median(times).toFixed(0)} ms, 95 % within ${quantile(times, 0.95).toFixed(0)} ms`,
      );
    return {
      attempts,
      firstViewMs,
      firstViewBytes,
      firstIndexSeconds: firstIndexMs / 1000,
      laterIndexMs: await timeLaterIndex(folder, cache, run),
      viewMsMedian: median(all),
      viewMs95: quantile(all, 0.95),
      views: Object.fromEntries(Object.entries(views).map(([name, times]) => [name, Math.round(median(times))])),
      serverMiBLargest: Math.round(Math.max(...memory.samples)),
    };
  } finally {
    memory.stop();
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
async function timeLaterIndex(folder: string, cache: string, run: string): Promise<number> {
  const server = await startUi(folder, cache, cache);
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
