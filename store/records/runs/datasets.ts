/** Datasets of supervised steps: blobs of JSON lines, which a run's configuration names. */
import type { SupervisedConfig } from '../../../core/contract/contract.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import type { Store } from '../../store.ts';

const NEWLINE = 10;

/** The bytes, of which the configuration says how many lines they are. */
export async function readDataset(
  store: Store,
  { dataset, examples }: Pick<SupervisedConfig, 'dataset' | 'examples'>,
): Promise<Uint8Array> {
  const bytes = await store.getBlob(dataset);
  const lines = bytes.reduce((count, byte) => (byte === NEWLINE ? count + 1 : count), 0);
  if (lines === examples) return bytes;
  throw new TemperError(
    'StoreCorrupt',
    `${dataset.key} must have the ${examples} examples that its run counts, it has ${lines}; restore it from a copy`,
  );
}
