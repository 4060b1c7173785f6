/** A store whose operations are counted and timed. */
import type { JournalSegments, Store } from '../../store/store.ts';
import type { ProcessMetrics } from './process-metrics.ts';

type StoreMetrics = Pick<ProcessMetrics, 'storeSeconds' | 'storeErrors' | 'storeBytes'>;

export function meteredStore(store: Store, metrics: StoreMetrics): Store {
  const meter = new Meter(metrics);
  return {
    uri: store.uri,
    id: () => store.id(),
    checkWritable: () => store.checkWritable(),
    async putBlob(bytes) {
      const ref = await meter.time('putBlob', () => store.putBlob(bytes));
      meter.wrote(bytes);
      return ref;
    },
    getBlob: async (ref) => meter.got(await meter.time('getBlob', () => store.getBlob(ref))),
    blobBytes: (ref) => meter.time('blobBytes', () => store.blobBytes(ref)),
    removeBlob: (ref) => meter.time('removeBlob', () => store.removeBlob(ref)),
    async publish(key, bytes) {
      const published = await meter.time('publish', () => store.publish(key, bytes));
      if (published.created) meter.wrote(bytes);
      return published;
    },
    read: async (key) => meter.got(await meter.time('read', () => store.read(key))),
    async replace(key, bytes) {
      await meter.time('replace', () => store.replace(key, bytes));
      meter.wrote(bytes);
    },
    list: (prefix) => meter.walk('list', store.list(prefix)),
    describe: (prefix) => meter.walk('describe', store.describe(prefix)),
    unfinished: () => meter.walk('unfinished', store.unfinished()),
    removeUnchanged: (object) => meter.time('removeUnchanged', () => store.removeUnchanged(object)),
    async openJournal(prefix) {
      return meteredJournal(await meter.time('openJournal', () => store.openJournal(prefix)), meter);
    },
    removeFolder: (prefix) => meter.time('removeFolder', () => store.removeFolder(prefix)),
    close: () => store.close(),
  };
}

function meteredJournal(journal: JournalSegments, meter: Meter): JournalSegments {
  for (const segment of journal.existing) meter.got(segment);
  return {
    existing: journal.existing,
    append(record) {
      meter.timeNow('append', () => journal.append(record));
      meter.wrote(record);
    },
    close: () => journal.close(),
  };
}

class Meter {
  readonly #metrics: StoreMetrics;

  constructor(metrics: StoreMetrics) {
    this.#metrics = metrics;
  }

  async time<T>(operation: string, act: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    try {
      return await act();
    } catch (error) {
      this.#metrics.storeErrors.add([operation]);
      throw error;
    } finally {
      this.#ended(operation, startedAt);
    }
  }

  timeNow(operation: string, act: () => void): void {
    const startedAt = performance.now();
    try {
      act();
    } catch (error) {
      this.#metrics.storeErrors.add([operation]);
      throw error;
    } finally {
      this.#ended(operation, startedAt);
    }
  }

  /** The time includes what its reader does between two objects. */
  async *walk<T>(operation: string, objects: AsyncIterable<T>): AsyncGenerator<T> {
    const startedAt = performance.now();
    try {
      yield* objects;
    } catch (error) {
      this.#metrics.storeErrors.add([operation]);
      throw error;
    } finally {
      this.#ended(operation, startedAt);
    }
  }

  got<T extends Uint8Array | null>(bytes: T): T {
    if (bytes !== null) this.#metrics.storeBytes.add(['read'], bytes.length);
    return bytes;
  }

  wrote(bytes: Uint8Array): void {
    this.#metrics.storeBytes.add(['written'], bytes.length);
  }

  #ended(operation: string, startedAt: number): void {
    this.#metrics.storeSeconds.observe([operation], (performance.now() - startedAt) / 1000);
  }
}
