/** Folders and stores that are removed with the test that made them, also in its `beforeEach`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { FileStore } from '../store/bytes/file-store.ts';

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'temper-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export const temporaryStore = (): FileStore => new FileStore(temporaryFolder());
