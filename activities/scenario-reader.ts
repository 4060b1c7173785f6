import type { BlobRef } from '../core/contract.ts';
import { TemperError } from '../core/failures.ts';
import type { Scenario } from '../play/agent.ts';
import type { ScenarioLine } from '../store/records/run-reader.ts';
import type { Store } from '../store/store.ts';

/** Runs that a worker is likely to play at once. */
const KEPT_FILES = 4;

/** Scenarios by index, from blobs that are read once per process. */
export function createScenarioReader(store: Store): (ref: BlobRef, index: number) => Promise<Scenario> {
  const files = new Map<string, Promise<string[]>>();
  const open = (ref: BlobRef): Promise<string[]> => {
    const lines = files.get(ref.sha256) ?? readLines(store, ref);
    files.delete(ref.sha256);
    files.set(ref.sha256, lines);
    // A failed read is not kept: the next try asks the store again.
    lines.catch(() => files.delete(ref.sha256));
    const [oldest] = files.keys();
    if (files.size > KEPT_FILES && oldest !== undefined) files.delete(oldest);
    return lines;
  };
  return async (ref, index) => {
    const lines = await open(ref);
    const line = lines[index];
    if (line === undefined) throw missing(ref, index, lines.length);
    return (JSON.parse(line) as ScenarioLine).scenario as Scenario;
  };
}

async function readLines(store: Store, ref: BlobRef): Promise<string[]> {
  return new TextDecoder()
    .decode(await store.getBlob(ref))
    .trimEnd()
    .split('\n');
}

function missing(ref: BlobRef, index: number, count: number): TemperError {
  return new TemperError(
    'BadConfig',
    `scenario ${index} must be one of the ${count} in ${ref.key}; start the run again`,
  );
}
