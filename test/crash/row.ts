/** Plays one row: a run of its own, hit once, watched to its end, and compared with the undisturbed run. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  differences,
  digest,
  isComplete,
  learns,
  paidTwice,
  readJournals,
  recoveryMs,
  S3_SERVER_AWAY_MS,
  stepsCommittedTwice,
  type Death,
  type Digest,
  type Journaled,
} from './evidence.ts';
import type { Hit, ProcessName } from './points/protocol.ts';
import type { Row } from './table.ts';
import type { Command } from '../stack.ts';
import { until } from '../until.ts';
import type { World } from './world.ts';

/** The outcome of one disturbed run. */
export interface Verdict {
  /** It was hit where it should be, ended by itself, and learned in every step. */
  readonly hasSurvived: boolean;
  readonly isIdentical: boolean;
  /** Null where there is nothing to complain about. */
  readonly complaint: string | null;
  readonly stepsCommittedTwice: number;
  readonly callsPaidTwice: number;
  readonly recoveries: readonly Recovery[];
  /** In a run with kills at random times. */
  readonly kills?: number;
}

interface Recovery {
  readonly process: Death['process'];
  readonly seconds: number;
}

/** What a run takes on a quiet machine is a tenth of it. */
const END_WITHIN_MS = 600_000;
/** Beyond the heartbeats' time-out of ten seconds. */
const FROZEN_MS = 12_000;
/** So long a request takes at most to reach a server that does not read it. */
const SENT_MS = 400;
const WRITING_WITHIN_MS = 60_000;

/** Its recovery is that of a stack that has settled since the last death. */
export const needsStandby = ({ process, signal }: Row): boolean => process === 'gpu-worker' && signal === 'SIGKILL';

export async function playRow(world: World, row: Row, reference: Digest | null): Promise<Verdict> {
  const name = `row-${row.number}`;
  const holder = row.holder ?? row.process;
  if (needsStandby(row)) await world.settle();
  const action = row.holder !== null ? 'hold' : row.signal === 'SIGKILL' ? 'kill' : 'stop';
  world.clear();
  world.aim(holder, { row: name, point: row.point, occurrence: row.occurrence, action });
  let running = world.train(name);
  const journals: Journaled[] = [];
  const deaths: Death[] = [];
  try {
    const hit = await untilHit(world, name, running);
    journals.push(readJournals(world, name));
    if (row.holder !== null) deaths.push(...(await hitFromOutside(world, row, name)));
    else if (row.signal === 'SIGSTOP') await thawLater(hit.pid);
    // A command line is started again by whoever started it: its supervisor is a person.
    else if (row.process !== 'cli') deaths.push({ process: row.process, pid: hit.pid, time: hit.time });
    if (row.process === 'cli' && row.signal === 'SIGKILL') {
      await running.ended;
      running = world.train(name);
    }
    await untilEnded(running);
    checkSays(world, row, hit);
  } catch (error) {
    return failed(running, error);
  }
  return judge(world, name, reference, journals, deaths);
}

/** Ends what is still there, so that the next row begins with a stack that works. */
export async function failed(running: Command, error: unknown): Promise<Verdict> {
  running.child.kill('SIGKILL');
  await running.ended;
  const complaint = `${error instanceof Error ? error.message : String(error)}\n${running.output()}`;
  return {
    hasSurvived: false,
    isIdentical: false,
    complaint,
    stepsCommittedTwice: 0,
    callsPaidTwice: 0,
    recoveries: [],
  };
}

export async function untilHit(world: World, row: string, running: Command): Promise<Hit> {
  let hit: Hit | null = null;
  await until(
    'the point is reached, or the run ends',
    () => (hit = world.hit(row)) !== null || running.outcome() !== null,
    END_WITHIN_MS,
  );
  if (hit === null) throw new Error('the run ended before the point was reached');
  return hit;
}

async function hitFromOutside(world: World, row: Row, name: string): Promise<Death[]> {
  const deaths = await hitAt(world, row, name);
  if (deaths.some(({ process }) => process === 's3-server')) {
    await sleep(S3_SERVER_AWAY_MS);
    await world.restartS3Server();
  }
  return deaths;
}

async function hitAt(world: World, { process, signal, moment }: Row, name: string): Promise<Death[]> {
  if (signal === 'SIGSTOP' || moment === 'sent') {
    const pid = requirePid(world.signal(process, 'SIGSTOP'), process);
    world.release(name);
    await sleep(signal === 'SIGSTOP' ? FROZEN_MS : SENT_MS);
    return end(pid, process, signal === 'SIGSTOP' ? 'SIGCONT' : 'SIGKILL');
  }
  const pid = requirePid(world.pidOf(process), process);
  if (moment === 'writing') {
    const before = world.writtenStamp(process);
    world.release(name);
    await until('the server writes something down', () => world.writtenStamp(process) !== before, WRITING_WITHIN_MS);
    return end(pid, process, 'SIGKILL');
  }
  const deaths = end(pid, process, 'SIGKILL');
  world.release(name);
  return deaths;
}

function end(pid: number, name: ProcessName, signal: NodeJS.Signals): Death[] {
  const time = Date.now();
  process.kill(pid, signal);
  return signal === 'SIGKILL' ? [{ process: name, pid, time }] : [];
}

function requirePid(pid: number | null, name: string): number {
  if (pid === null) throw new Error(`${name} must run to be hit, it does not`);
  return pid;
}

async function thawLater(pid: number): Promise<void> {
  await sleep(FROZEN_MS);
  process.kill(pid, 'SIGCONT');
}

export async function untilEnded(running: Command, withinMs = END_WITHIN_MS): Promise<void> {
  await until('the run ends by itself', () => running.outcome() !== null, withinMs);
  const outcome = running.outcome();
  if (outcome !== 0) throw new Error(`the run must end well, it ended with ${outcome}`);
}

/** A thawed process whose work was taken over has to say so. */
function checkSays(world: World, { says, process }: Row, hit: Hit): void {
  if (says === null) return;
  const lines = world.log(process === 'gpu-worker' ? 'gpu-worker' : 'worker-crash');
  const late = lines.some((line) => Date.parse(String(line['time'])) > hit.time && says.test(JSON.stringify(line)));
  if (!late) throw new Error(`a thawed ${process} must say that its work was taken over (${says.source}), it does not`);
}

/** The verdict of store and logs on a run that has ended. */
export function judge(
  world: World,
  name: string,
  reference: Digest | null,
  journals: readonly Journaled[],
  deaths: readonly Death[],
): Verdict {
  const differing = reference === null ? [] : differences(reference, digest(world, name));
  const passes = world.passes();
  const recoveries = deaths.flatMap((death) => {
    const ms = recoveryMs(passes, death);
    return ms === null ? [] : [{ process: death.process, seconds: ms / 1000 }];
  });
  // Other samples may leave a step without a signal.
  const hasSurvived = reference === null ? isComplete(world, name) : learns(world, name);
  const twice = stepsCommittedTwice(world, name);
  const paid = journals.reduce((sum, journaled) => sum + paidTwice(world, journaled), 0);
  const complaints = [
    differing.length === 0 ? '' : `differs from the undisturbed run in ${differing.slice(0, 6).join(', ')}`,
    hasSurvived ? '' : 'a step is missing, or has the adapter of its parent',
    twice === 0 ? '' : `${twice} steps were committed twice`,
    paid === 0 ? '' : `${paid} journaled calls were made again`,
  ].filter((complaint) => complaint !== '');
  return {
    hasSurvived,
    isIdentical: differing.length === 0,
    complaint: complaints.length === 0 ? null : complaints.join('; '),
    stepsCommittedTwice: twice,
    callsPaidTwice: paid,
    recoveries,
  };
}
