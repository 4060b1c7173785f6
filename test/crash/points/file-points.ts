/** Points before and after each write of the store, by what is written. */
import { nodeFileSystem, type AppendFile } from '../../../store/bytes/file-system.ts';
import { pass, reach, willHit } from './reach.ts';

/** Points by the name that a file ends up under; temporary files have none of their own. */
const KINDS: readonly (readonly [RegExp, string])[] = [
  [/\/blobs\//, 'blob'],
  [/eval\.rollouts\.jsonl\.gz$/, 'eval-rollouts'],
  [/\.rollouts\.jsonl\.gz$/, 'rollouts'],
  [/\.judged\.json$/, 'judged'],
  [/\.answers\/[^/]+\.\d+\.json$/, 'answer'],
  [/\/judgments\//, 'verdict'],
  [/\/verdict\.json$/, 'step-verdict'],
  [/\.times\.json$/, 'times'],
  [/\/eval\.json$/, 'eval'],
  [/\/run\.json$/, 'run'],
  [/\/prepared\.json$/, 'prepared'],
  [/\/scenarios\.jsonl$/, 'scenarios'],
  [/\/steps\/\d+\.\d+\.jsonl$/, 'steps'],
  [/\/state\.json$/, 'state'],
  [/\/position\.json$/, 'position'],
  [/\/pruned\.json$/, 'pruned'],
  [/\/store\.json$/, 'store'],
  [/\.journal$/, 'upload'],
];

/** In place: the store takes this very object by default. */
export function layFilePoints(): void {
  const disk = { ...nodeFileSystem };
  Object.assign(nodeFileSystem, {
    link: (from: string, to: string) => around(kindOf(to), () => disk.link(from, to)),
    rename: (from: string, to: string) => around(kindOf(to), () => disk.rename(from, to)),
    unlink: (file: string) =>
      file.includes('/blobs/') ? around('blob-removal', () => disk.unlink(file)) : disk.unlink(file),
    removeFolder: (folder: string) => around('journals', () => disk.removeFolder(folder)),
    openAppend: (file: string) => {
      const journal = disk.openAppend(file);
      return { append: (bytes: Uint8Array) => append(journal, bytes), close: () => journal.close() };
    },
  });
}

export async function around<T>(kind: string, write: () => Promise<T>): Promise<T> {
  await reach(`${kind}.before`);
  const written = await write();
  await reach(`${kind}.after`);
  return written;
}

function append(journal: AppendFile, bytes: Uint8Array): void {
  pass('journal.before');
  if (willHit('journal.half')) journal.append(bytes.subarray(0, bytes.length >> 1));
  pass('journal.half');
  journal.append(bytes);
  pass('journal.after');
}

export function kindOf(file: string): string {
  return KINDS.find(([pattern]) => pattern.test(file))?.[1] ?? 'other';
}
