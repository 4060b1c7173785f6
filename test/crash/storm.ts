/** Disturbances that no table names: kills at random times, the death of everything at once, of a command line and all behind it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../../core/numbers/seeds.ts';
import { isWork, readJournals, type Death, type Digest, type Journaled } from './evidence.ts';
import type { ProcessName } from './points/protocol.ts';
import { failed, judge, untilEnded, untilHit, type Verdict } from './row.ts';
import type { Command } from '../stack.ts';
import { until } from '../until.ts';
import type { World } from './world.ts';

export type Victims = readonly ProcessName[];

export const VICTIMS: Victims = ['temporal-server', 'typescript-worker', 'gpu-worker', 'cli'];
export const VICTIMS_WITH_VLLM: Victims = ['vllm', 'gpu-worker', 'typescript-worker'];
export const VICTIMS_WITH_RANKS: Victims = ['rank', 'rank', 'rank', 'gpu-worker'];
const KILLS_A_RUN = 4;
/** An undisturbed run takes eight seconds and more: most meet all of their kills. */
const LONGEST_PAUSE_MS = 5000;
const STACK_WITHIN_MS = 600_000;
/** Each of its starts takes a minute, and some where the machine is busy. */
const WITH_VLLM_WITHIN_MS = 900_000;

/**
 * Up to four kills of one run, until it ends; the line of a scene says how many there were. Where vLLM samples there is no
 * undisturbed run to compare with (`reference` null): two runs sample other tokens.
 */
export async function playRandomKills(
  world: World,
  seed: number,
  reference: Digest | null,
  victims: Victims,
): Promise<Verdict> {
  const run = `random-${seed}`;
  const withinMs = reference === null ? WITH_VLLM_WITHIN_MS : STACK_WITHIN_MS;
  const random = createRandom(seed);
  const journals: Journaled[] = [];
  const deaths: Death[] = [];
  world.clear();
  let running = world.train(run);
  try {
    for (let kills = 0; kills < KILLS_A_RUN; kills++) {
      // Every second kill may come while the one before is not recovered from yet.
      if (kills % 2 === 1) await until('work goes on', () => isWorking(world, deaths, running), withinMs);
      await Promise.race([sleep(random() * LONGEST_PAUSE_MS), running.ended]);
      if (running.outcome() === 0) break;
      const victim = victims[Math.floor(random() * victims.length)]!;
      journals.push(readJournals(world, run));
      const pid = victim === 'cli' ? running.child.pid! : world.pidOf(victim);
      if (pid === null) continue;
      const time = Date.now();
      // It may have ended by itself meanwhile.
      if (!kill(pid)) continue;
      deaths.push({ process: victim, pid, time });
      if (victim === 'cli') running = await again(world, run, running);
    }
    await untilEnded(running, withinMs);
    if (reference === null) await world.done('verify', run);
  } catch (error) {
    return failed(running, error);
  }
  // Whose death a wait was for cannot be told apart: no recovery is counted.
  return { ...judge(world, run, reference, journals, []), kills: deaths.length };
}

function isWorking(world: World, deaths: readonly Death[], running: Command): boolean {
  const since = deaths.at(-1)?.time ?? 0;
  return running.outcome() !== null || world.passes().some((pass) => pass.time > since && isWork(pass));
}

async function again(world: World, run: string, running: Command): Promise<Command> {
  await running.ended;
  return world.train(run);
}

/** Command line, daemon and all that hangs on it; then somebody starts the same command again. */
export async function playEndOfEverything(world: World, seed: number, reference: Digest): Promise<Verdict> {
  const run = `everything-${seed}`;
  world.clear();
  let running = world.train(run);
  try {
    // From the first look at the run's state: before, there is little to lose.
    await until(
      'the run has begun',
      () => world.passes().some(({ point }) => point === 'rollout.entry'),
      STACK_WITHIN_MS,
    );
    await sleep(createRandom(seed)() * 4000);
    const journaled = readJournals(world, run);
    const daemon = world.pidOf('daemon');
    for (const pid of [running.child.pid, daemon, ...world.childPids()]) kill(pid);
    // When the last one died: what another did meanwhile is nobody's recovery.
    const death = { process: 'everything' as const, pid: 0, time: Date.now() };
    await running.ended;
    await until(
      'the stack is there again',
      () => world.pidOf('daemon') !== daemon && world.alive().length > 3,
      STACK_WITHIN_MS,
    );
    running = world.train(run);
    await untilEnded(running);
    return judge(world, run, reference, [journaled], [death]);
  } catch (error) {
    return failed(running, error);
  }
}

/** False where there is no such process any more. */
function kill(pid: number | null | undefined): boolean {
  try {
    return pid ? process.kill(pid, 'SIGKILL') : false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}

/** Without a warm stack: the one command line holds everything, and everything ends with it. The next one runs one server. */
export async function playColdCommandLine(world: World, look: number, reference: Digest): Promise<Verdict> {
  const run = `cold-${look}`;
  await world.letGo();
  world.clear();
  world.aim('cli', { row: run, point: 'looks', occurrence: look, action: 'kill' });
  let running = world.train(run);
  try {
    await untilHit(world, run, running);
    await running.ended;
    const journaled = readJournals(world, run);
    await until('nothing is left behind', () => world.servers().length === 0 && world.alive().length === 0, 120_000);
    running = world.train(run);
    await until('a server runs again', () => world.servers().length > 0, STACK_WITHIN_MS);
    const servers = world.servers().length;
    await untilEnded(running);
    if (servers !== 1) throw new Error(`exactly one server must run afterwards, ${servers} did`);
    return judge(world, run, reference, [journaled], []);
  } catch (error) {
    return failed(running, error);
  }
}
