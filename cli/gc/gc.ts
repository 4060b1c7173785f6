import { parseInterval } from '../schedule/schedule-timing.ts';
import { KEPT_UNNAMED_MS } from '../../core/wire-constants.ts';
import { planGarbage, removeGarbage, type Garbage, type GarbageKind } from '../../store/records/garbage.ts';
import { sizeOf } from '../../store/records/checkpoints.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { formatBytes, plural } from '../../core/format.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { GcContext } from './command.ts';

/** Labels of the kinds, in the order of the table. */
const KINDS: Readonly<Record<GarbageKind, string>> = {
  unfinished: 'unfinished writes',
  blob: 'blobs that nothing names',
  journal: 'journals of ended runs',
  folder: 'folders without a run',
};

export async function gc({ flags, project, env, output }: GcContext): Promise<number> {
  const before = Date.now() - readAge(flags['older-than']);
  const store = await openProjectStore(project, env);
  const { objects, notes } = await (flags.remove ? removeGarbage : planGarbage)(store, before);
  const bytes = sizeOf(objects);
  if (flags.json) {
    const found = objects.map(({ kind, key, run, bytes: size, modifiedAtMs }) => {
      return { kind, key, run, bytes: size, modifiedAt: new Date(modifiedAtMs).toISOString() };
    });
    const writtenBefore = new Date(before).toISOString();
    printJson(output, { store: store.uri, removed: flags.remove, writtenBefore, bytes, objects: found, notes });
    return EXIT.ok;
  }
  for (const note of notes) output.line(`note  ${note}`);
  if (objects.length > 0) output.line(renderKinds(objects));
  output.line(describe(objects.length, bytes, flags.remove));
  return EXIT.ok;
}

function readAge(text: string | null): number {
  if (text === null) return KEPT_UNNAMED_MS;
  const ageMs = parseInterval(text);
  if (ageMs >= KEPT_UNNAMED_MS) return ageMs;
  throw new UsageError(
    `--older-than must be at least 1d (what was just written may be about to be named), got ${text}; pass 1d or more`,
  );
}

function renderKinds(objects: readonly Garbage[]): string {
  const kinds = Object.entries(KINDS).map(([kind, label]) => ({
    label,
    found: objects.filter((object) => object.kind === kind),
  }));
  const rows = kinds
    .filter(({ found }) => found.length > 0)
    .map(({ label, found }) => [label, String(found.length), formatBytes(sizeOf(found)), runsOf(found)]);
  return createTable(['garbage', 'objects', 'size', 'runs'], rows);
}

function runsOf(objects: readonly Garbage[]): string {
  return [...new Set(objects.flatMap(({ run }) => run ?? []))].join(', ') || '–';
}

function describe(count: number, bytes: number, isRemoved: boolean): string {
  if (count === 0) return 'no garbage';
  const what = `${plural(count, 'object')} with ${formatBytes(bytes)}`;
  return isRemoved ? `${what} removed` : `${what} would be removed; pass --remove to remove them`;
}
