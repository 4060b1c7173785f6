/** The cost of an open `temper ui` with clients to a run: within one run, in turns with and without clients. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { GPU_QUEUE } from '../../core/contract/wire-constants.ts';
import { rolloutQueue, runWorkflowId, storeQueue, WORKFLOW_QUEUE } from '../../core/names/queues.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { groupTimesKey } from '../../store/layout.ts';
import { readStored, TimesFileSchema } from '../../store/records/file-schemas.ts';
import { readState } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { trainRun } from '../../workflows/train-run.ts';
import { countFlag, mean, median, type Flags } from '../bench.ts';
import { onFakeStack, type Place } from '../long.ts';
import { readProgram, startUi, type UiProcess } from './ui-process.ts';

const RUN = 'bench-ui';
/** More than the measurement sees: it ends the run. */
const STEPS = 100_000;
const WARM_UP_STEPS = 10;

/** Part of the time, in milliseconds since 1970. */
interface Turn {
  readonly hasClients: boolean;
  readonly fromMs: number;
  readonly toMs: number;
  /** Seconds of CPU that the server took for each second. */
  readonly cpu: number;
}

export function measureRun(flags: Flags, cache: string): Promise<object> {
  return onFakeStack(countFlag(flags, 'worker-heap-mib'), async (place, client) => {
    const store = await openStore(place.store);
    const end = await startRun(flags, store, client);
    const server = await startUi({ program: readProgram(flags['of']!), store: place.store, cache, cwd: place.project });
    try {
      return await takeTurns(flags, { place, store, server });
    } finally {
      await server.stop();
      await end();
    }
  });
}

async function startRun(flags: Flags, store: Store, client: Client): Promise<() => Promise<unknown>> {
  const storeId = await store.id();
  const config = defaultRunConfig({
    run: RUN,
    agent: 'bench-digit',
    baseModel: 'pocket',
    steps: STEPS,
    groupsPerStep: countFlag(flags, 'groups'),
    groupSize: countFlag(flags, 'group-size'),
    replacementRounds: 0,
    evalScenarios: 4,
  });
  const queues = { rollout: rolloutQueue(storeId, config.agent), gpu: storeQueue(storeId, GPU_QUEUE) };
  const handle = await client.workflow.start<typeof trainRun>('trainRun', {
    workflowId: runWorkflowId(storeId, RUN),
    taskQueue: storeQueue(storeId, WORKFLOW_QUEUE),
    args: [{ config, queues, carried: null, resume: null }],
  });
  return () => handle.terminate('measured');
}

async function takeTurns(
  flags: Flags,
  { store, server }: { readonly place: Place; readonly store: Store; readonly server: UiProcess },
): Promise<object> {
  while (((await readState(store, RUN))?.step ?? 0) < WARM_UP_STEPS) await sleep(500);
  await server.ask(`runs/${RUN}/attempts`);
  const [pairs, seconds] = [countFlag(flags, 'pairs'), countFlag(flags, 'seconds')];
  const turns: Turn[] = [];
  for (let pair = 0; pair < pairs; pair++)
    for (const hasClients of pair % 2 === 0 ? [false, true] : [true, false])
      turns.push(await takeTurn(server, hasClients, hasClients ? countFlag(flags, 'clients') : 0, seconds));
  const played = await readEnds(store);
  const lengths = turns.map((turn) => ({ ...turn, stepMs: mean(stepsWithin(played, turn)) }));
  const ratios = Array.from({ length: pairs }, (_, pair) => {
    const both = lengths.slice(2 * pair, 2 * pair + 2);
    const of = (hasClients: boolean) => both.find((turn) => turn.hasClients === hasClients)!.stepMs;
    return of(true) / of(false);
  });
  const off = lengths.filter((turn) => !turn.hasClients).map(({ stepMs }) => stepMs);
  console.log(`  a step of ${median(off).toFixed(0)} ms takes ${median(ratios).toFixed(4)} of that with clients`);
  const cpuOf = (hasClients: boolean) =>
    mean(turns.filter((turn) => turn.hasClients === hasClients).map(({ cpu }) => cpu));
  return {
    steps: played.length,
    stepMs: median(off),
    ratioMedian: median(ratios),
    ratioMean: mean(ratios),
    ratios,
    serverCpuIdle: cpuOf(false),
    serverCpuWithClients: cpuOf(true),
  };
}

async function takeTurn(server: UiProcess, hasClients: boolean, count: number, seconds: number): Promise<Turn> {
  const stops = Array.from({ length: count }, () => server.follow(RUN));
  // The clients have read everything once.
  await sleep(2000);
  const [fromMs, before] = [Date.now(), cpuSeconds(server.process)];
  await sleep(seconds * 1000);
  const toMs = Date.now();
  const cpu = (1000 * (cpuSeconds(server.process) - before)) / (toMs - fromMs);
  for (const stop of stops) stop();
  return { hasClients, fromMs, toMs, cpu };
}

/** Hundredths of seconds, in Linux's own file. */
function cpuSeconds({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** When the first group of each step was played: files tell milliseconds, the curve tenths of seconds. */
async function readEnds(store: Store): Promise<number[]> {
  const last = (await readState(store, RUN))?.step ?? 0;
  const ends: number[] = [];
  for (let step = 1; step <= last; step++) {
    const times = await readStored(store, groupTimesKey({ run: RUN, branch: 0, step, group: 0 }), TimesFileSchema);
    if (times?.endedAt !== undefined) ends.push(times.endedAt);
  }
  return ends;
}

/** Milliseconds between steps that lie in a turn. */
function stepsWithin(ends: readonly number[], { fromMs, toMs }: Turn): number[] {
  const own = ends.filter((end) => end >= fromMs && end <= toMs);
  return own.slice(1).map((end, index) => end - own[index]!);
}
