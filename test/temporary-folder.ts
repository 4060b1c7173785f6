/** What tests open is closed, and folders are removed, with the test that made them; what a file makes at its top, with the file. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished, TestRunner } from 'vitest';
import { FileStore } from '../store/bytes/file-store.ts';

/** For tests, `beforeEach` and the top of a file or a `describe`; a `beforeAll` has no end of its own. */
export function atItsEnd(close: () => unknown): void {
  if (TestRunner.getCurrentTest() === undefined) afterAll(async () => void (await close()));
  else onTestFinished(async () => void (await close()));
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'temper-test-'));
  atItsEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

export const temporaryStore = (): FileStore => new FileStore(temporaryFolder());
