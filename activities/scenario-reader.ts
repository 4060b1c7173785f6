import type { BlobRef } from '../core/contract/contract.ts';
import { badConfig } from '../core/contract/failures.ts';
import type { Scenario } from '../play/agent.ts';
import { parseStoredJson } from '../store/bytes/json.ts';
import type { ScenarioLine } from '../store/records/runs/run-reader.ts';
import { openScenarioFile, storedLines, type ScenarioFile } from '../store/records/runs/scenario-files.ts';
import type { Store } from '../store/store.ts';

/** Runs that a worker is likely to play at once. */
const KEPT_FILES = 4;
/** Parts of large files that are in memory: about 64 MiB. */
const KEPT_PARTS = 32;

/** Scenarios by index, from blobs that are read once per process; of many scenarios, only the parts that hold them. */
export function createScenarioReader(store: Store): (ref: BlobRef, index: number) => Promise<Scenario> {
  const files = new Kept<Opened>(KEPT_FILES);
  const parts = new Kept<string[]>(KEPT_PARTS);
  const open = async (ref: BlobRef): Promise<Opened> => {
    const file = await openScenarioFile(store, ref);
    return { parts: file.parts, lines: file.parts === null ? storedLines(file.bytes) : [] };
  };
  const find = async (ref: BlobRef, index: number): Promise<string> => {
    const file = await files.get(ref.sha256, () => open(ref));
    if (file.parts === null) return file.lines[index] ?? missing(ref, index, file.lines.length);
    let first = 0;
    for (const { blob, scenarios } of file.parts) {
      const place = index - first;
      if (place < scenarios) {
        const lines = await parts.get(blob.sha256, async () => storedLines(await store.getBlob(blob)));
        return lines[place] ?? missing(ref, index, first + lines.length);
      }
      first += scenarios;
    }
    return missing(ref, index, first);
  };
  return async (ref, index) => (parseStoredJson(await find(ref, index), ref.key) as ScenarioLine).scenario as Scenario;
}

interface Opened extends Pick<ScenarioFile, 'parts'> {
  /** Empty for a file in parts. */
  lines: string[];
}

/** The values that were asked for last. */
class Kept<T> {
  readonly #values = new Map<string, Promise<T>>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string, read: () => Promise<T>): Promise<T> {
    const value = this.#values.get(key) ?? read();
    this.#values.delete(key);
    this.#values.set(key, value);
    // A failed read is not kept: the next try asks the store again.
    value.catch(() => this.#values.delete(key));
    const [oldest] = this.#values.keys();
    if (this.#values.size > this.#limit && oldest !== undefined) this.#values.delete(oldest);
    return value;
  }
}

function missing(ref: BlobRef, index: number, count: number): never {
  throw badConfig(`scenario ${index} must be one of the ${count} in ${ref.key}; start the run again`);
}
