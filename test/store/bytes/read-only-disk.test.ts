/** A real disk that becomes read-only: Node's own words for it are wrong where a folder has to be made first. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

import { FileStore } from '../../../store/bytes/file-store.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const disk = temporaryFolder();
/** Only root mounts; elsewhere the store's seam has to do. */
const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]).status === 0;

afterAll(() => void (isMounted && spawnSync('umount', [disk])));

const bytes = new Uint8Array([1, 2, 3]);
const WRITES: Record<string, (store: FileStore) => Promise<unknown>> = {
  'a blob': (store) => store.putBlob(bytes),
  'a commit in folders that are not there': (store) =>
    store.publish('runs/demo/branches/0/steps/1/manifest.json', bytes),
  'what is displayed': (store) => store.replace('runs/demo/state.json', bytes),
  'a journal': async (store) => {
    const journal = await store.openJournal('runs/demo/journal/0.1/0');
    journal.append(bytes);
    journal.close();
  },
};

test.skipIf(!isMounted).each(Object.entries(WRITES))(
  '%s on it is refused as EROFS, and made once it is writable',
  async (_name, write) => {
    const remount = (option: string) => spawnSync('mount', ['-o', `remount,${option}`, disk]);
    const store = new FileStore(join(disk, 'store'));
    remount('ro');
    const refusal = {
      type: 'StoreUnavailable',
      message: expect.stringContaining('(EROFS): the file system is read-only'),
    };
    await expect(write(store)).rejects.toMatchObject(refusal);
    remount('rw');
    await write(store);
    rmSync(join(disk, 'store'), { recursive: true });
  },
);
