/** Evidence of a run and of its logs: read from files alone, by code that shares nothing with the product's readers. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { isPosition, untimedPosition } from '../untimed.ts';
import type { Pass, ProcessName } from './points/protocol.ts';
import { STEPS, type World } from './world.ts';

/** Hashes of files by their names. */
export type Digest = Readonly<Record<string, string>>;

/** Every file under a hash, by its place in the run, as its own hash: equal runs have equal maps. */
export function digest(world: World, run: string): Digest {
  const folder = join(world.store, 'runs', run);
  const branches = filesIn(join(folder, 'branches')).filter((file) => !file.endsWith('.times.json'));
  const named = ['prepared.json', 'scenarios.jsonl', ...branches.map((file) => `branches/${file}`)];
  const blobs = filesIn(join(world.store, 'blobs'));
  return Object.fromEntries([
    ...named.map((file) => [file, hashFile(join(folder, file))]),
    ...blobs.map((name) => [`blobs/${name}`, hashFile(join(world.store, 'blobs', name))]),
  ]);
}

/** Names of what differs; a blob whose bytes are not those of its name differs from itself. */
export function differences(left: Digest, right: Digest): string[] {
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].filter((name) => left[name] !== right[name] || isForged(name, right[name])).toSorted();
}

function isForged(name: string, sha256: string | undefined): boolean {
  return name.startsWith('blobs/') && name !== `blobs/${sha256}`;
}

/** Each step has an adapter of its own. */
export function learns(world: World, run: string): boolean {
  const adapters = adaptersOf(world, run);
  return adapters.every((adapter, step) => adapter !== null && adapter !== adapters[step - 1]);
}

export function isComplete(world: World, run: string): boolean {
  return adaptersOf(world, run).every((adapter) => adapter !== null);
}

/** Adapters by step; null where a step has no commit. */
function adaptersOf(world: World, run: string): (string | null)[] {
  return Array.from({ length: STEPS + 1 }, (_, step) => {
    const file = join(world.store, 'runs', run, 'branches', '0', 'steps', String(step), 'manifest.json');
    if (!existsSync(file)) return null;
    return (JSON.parse(readFileSync(file, 'utf8')) as { adapter: { sha256: string } }).adapter.sha256;
  });
}

/** A step played more groups than it trains: one carried no signal. */
export function replaces(world: World, run: string): boolean {
  const groups = filesIn(join(world.store, 'runs', run, 'branches', '0', 'steps'));
  return groups.some((file) => /^\d+\/groups\/2\.judged\.json$/.test(file));
}

/** Commits that were made, not found, beyond the first of each step. */
export function stepsCommittedTwice(world: Pick<World, 'log'>, run: string): number {
  const made = world.log('gpu-worker').filter(({ msg, run: of, found }) => {
    return msg === 'step committed' && of === run && found === false;
  });
  return made.length - new Set(made.map(({ step }) => step)).size;
}

/** A death, as it is to be recovered from. */
export interface Death {
  readonly process: ProcessName | 'everything';
  readonly pid: number;
  readonly time: number;
}

/** So long the suite takes to start it again. */
export const S3_SERVER_AWAY_MS = 2000;

const STORED =
  /^(blob|manifest|view|view-config|rollouts|judged|eval|eval-rollouts|prepared|scenarios|run|steps|state|times)\.after$/;

/** The run's journals at a moment: calls by their name in the engine's log, and values of `once`. */
export interface Journaled {
  readonly time: number;
  readonly calls: ReadonlySet<string>;
  readonly values: ReadonlySet<number>;
}

export function readJournals(world: Pick<World, 'journals'>, run: string): Journaled {
  const calls = new Set<string>();
  const values = new Set<number>();
  for (const { place, bytes } of world.journals(run).flatMap(readSegments)) {
    for (const record of readRecords(bytes)) {
      if ('k' in record) calls.add(`${run}.${place}.${record.a}/${record.k}/${record.o}`);
      else if ('n' in record) values.add(record.v);
    }
  }
  // Whatever is executed from now on was not in there.
  return { time: Date.now(), calls, values };
}

/** Calls and side effects that happened after that moment though their record stood there. */
export function paidTwice(world: Pick<World, 'log' | 'effects'>, { time, calls, values }: Journaled): number {
  const executed = world.log('gpu-worker').filter(({ msg, call, time: at }) => {
    return msg === 'call' && Date.parse(String(at)) > time && calls.has(String(call));
  });
  const effects = world.effects().filter((effect) => effect.time > time && values.has(effect.value));
  return executed.length + effects.length;
}

type Recorded = { a: number; k: string; o: number } | { a: number; n: string; v: number } | { a: number; t: number };

/** Each with its step and group, as the engine's log names them. */
function readSegments(folder: string): { place: string; bytes: Buffer }[] {
  return filesIn(folder).map((file) => {
    const [step = '', part = ''] = file.split('/');
    return { place: `${step}.${part}`, bytes: readIfThere(join(folder, file)) };
  });
}

/** From the format's description; a torn tail is nobody's record. */
function readRecords(bytes: Buffer): Recorded[] {
  const records: Recorded[] = [];
  for (let start = 0; start + 8 <= bytes.length;) {
    const end = start + 8 + bytes.readUInt32LE(start);
    const payload = bytes.subarray(start + 8, end);
    if (end > bytes.length || crc32(payload) !== bytes.readUInt32LE(start + 4)) break;
    records.push(JSON.parse(payload.toString('utf8')) as Recorded);
    start = end;
  }
  return records;
}

/**
 * Milliseconds from the death of a process to the next piece of work that is done with its successor's help: something
 * that the successor wrote or answered; after a death of the server, something that anybody wrote after taking up an
 * activity from the new one; after a death of the S3 server, something of the run that it took. Null where nothing was
 * left to do.
 */
export function recoveryMs(passes: readonly Pass[], { process, pid, time }: Death): number | null {
  const later = passes.filter((pass) => pass.time > time);
  if (process === 's3-server') {
    // Requests that the dead server took in its last moment may be told after its death.
    return sinceDeath(
      later.find((pass) => isStored(pass) && pass.time > time + S3_SERVER_AWAY_MS),
      time,
    );
  }
  const from = process === 'temporal-server' ? later.find(({ point }) => point.endsWith('.entry'))?.time : time;
  const isOfSuccessor = (pass: Pass) => pass.process === process && pass.pid !== pid;
  const isAnybodys = process === 'temporal-server' || process === 'everything';
  const done = later
    .filter((pass) => isWork(pass) && pass.time >= (from ?? Infinity))
    .find((pass) => isAnybodys || isOfSuccessor(pass));
  return sinceDeath(done, time);
}

function sinceDeath(done: Pass | undefined, time: number): number | null {
  return done === undefined ? null : done.time - time;
}

/** An object of the run was taken by its store; journals go there behind its back. */
function isStored({ point }: Pass): boolean {
  return STORED.test(point);
}

/** Something was written down or answered. */
export function isWork({ point }: Pass): boolean {
  return /\.after$|^answer\.ready$/.test(point);
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('.'));
  return files.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1)).toSorted();
}

function hashFile(file: string): string {
  const bytes = readIfThere(file);
  return createHash('sha256')
    .update(isPosition(file) ? untimedPosition(bytes) : bytes)
    .digest('hex');
}

function readIfThere(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    return Buffer.alloc(0);
  }
}
