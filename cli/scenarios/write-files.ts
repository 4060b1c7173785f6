/** Files of generated scenarios: written whole, and replaced only while nobody edited them. */
import { readFile } from 'node:fs/promises';
import { badConfig } from '../../core/contract/failures.ts';
import { sha256Hex } from '../../core/text/hashes.ts';
import { generatedFileKey } from '../../store/layout.ts';
import { encodeJson, encodeJsonLines } from '../../store/bytes/json.ts';
import type { Store } from '../../store/store.ts';
import { writeWhole } from '../command-line/files.ts';
import { toRow, type ScenarioRow } from './make-plan.ts';

/** `scenarios.jsonl` has its held-out scenarios in `scenarios.held-out.jsonl`. */
export function heldOutFile(file: string): string {
  return `${file.replace(/\.jsonl$/, '')}.held-out.jsonl`;
}

/** Whether a file is missing, as it was generated, or a person's own by now. */
type FileState = 'missing' | 'generated' | 'own';

export async function stateOf(store: Store, file: string): Promise<FileState> {
  const bytes = await readIfThere(file);
  if (bytes === null) return 'missing';
  return (await store.read(generatedFileKey(sha256Hex(bytes)))) === null ? 'own' : 'generated';
}

/** Throws if a file would be lost; asked before anything is paid for. */
export async function checkReplaceable(store: Store, files: readonly string[]): Promise<void> {
  for (const file of files)
    if ((await stateOf(store, file)) === 'own')
      throw badConfig(
        `${file} must be a new file, or one that Temper wrote and nobody edited, but it is neither; move it away, or choose another place`,
      );
}

/** Writes each file whole or not at all. */
export async function writeScenarios(store: Store, file: string, rows: readonly ScenarioRow[]): Promise<void> {
  await writeGenerated(store, file, encodeJsonLines(rows.map(({ task, difficulty }) => toRow(task, difficulty))));
}

/** For any file that a person may edit afterwards. */
export async function writeGenerated(store: Store, file: string, bytes: Uint8Array): Promise<void> {
  await checkReplaceable(store, [file]);
  await store.publish(generatedFileKey(sha256Hex(bytes)), encodeJson({ schema: 1 }));
  await writeWhole('--out', file, bytes, 'replace');
}

async function readIfThere(file: string): Promise<Uint8Array | null> {
  try {
    return await readFile(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw badConfig(`--out must be a file that can be read, got ${file} (${code}); pass another one`);
  }
}
