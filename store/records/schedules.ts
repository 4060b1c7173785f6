/** What schedules leave in the store: which run each firing is, and the checkpoint that it ended with. */
import type { Checkpoint } from '../../core/contract.ts';
import { childNumbers } from './children.ts';
import { ConclusionFileSchema, FiringFileSchema, parseStored } from './file-schemas.ts';
import { decodeJson } from '../bytes/json.ts';
import { conclusionKey, firingKey, firingsPrefix } from '../layout.ts';
import type { Store } from '../store.ts';

/** `schedules/<name>/<n>.json`. */
export interface FiringFile {
  schema: 1;
  /** Id of the workflow that asked. */
  firing: string;
  run: string;
  parent: Checkpoint | null;
}

/** `schedules/<name>/<n>.concluded.json`. */
export interface ConclusionFile {
  schema: 1;
  checkpoint: Checkpoint;
}

export interface Firing extends FiringFile {
  number: number;
  /** Null where the run goes on, or did not end well. */
  checkpoint: Checkpoint | null;
}

/** In the order of their numbers. */
export async function readFirings(store: Store, schedule: string): Promise<Firing[]> {
  const numbers = await childNumbers(store, firingsPrefix(schedule));
  const firings = await Promise.all(numbers.map((number) => readFiring(store, schedule, number)));
  return firings.filter((firing) => firing !== null);
}

/** What the next firing begins with: what the last one that ended well ended with. */
export function newestOf(firings: readonly Firing[]): Checkpoint | null {
  return firings.findLast(({ checkpoint }) => checkpoint !== null)?.checkpoint ?? null;
}

async function readFiring(store: Store, schedule: string, number: number): Promise<Firing | null> {
  const [firing, conclusion] = await Promise.all([
    store.read(firingKey(schedule, number)),
    store.read(conclusionKey(schedule, number)),
  ]);
  if (firing === null) return null;
  const ended =
    conclusion &&
    parseStored(
      ConclusionFileSchema,
      decodeJson(conclusion, conclusionKey(schedule, number)),
      conclusionKey(schedule, number),
    );
  const file = parseStored(
    FiringFileSchema,
    decodeJson(firing, firingKey(schedule, number)),
    firingKey(schedule, number),
  );
  return { ...file, number, checkpoint: ended?.checkpoint ?? null };
}
