/** Removes what nothing in the store needs any more. */
import { formatBytes, plural } from '../core/reports/format.ts';
import type { GarbageKind } from '../store/records/retention/garbage.ts';
import { defineOperation, type Place, type Table } from './operation.ts';

/** Labels of the kinds, in the order of the table. */
const KINDS: Readonly<Record<GarbageKind, string>> = {
  unfinished: 'unfinished writes',
  blob: 'blobs that nothing names',
  journal: 'journals of ended runs',
  folder: 'folders without a run',
};

const DAY_MS = 86_400_000;

export const gc = defineOperation({
  name: 'gc',
  group: 'Operate',
  summary: 'show what nothing in the store needs any more, or remove it',
  details: [
    'Garbage is: blobs that no run, commit or schedule needs; writes that were never finished, because their writer was',
    'killed; journals of runs that have ended; folders of runs without a run.json, as an interrupted copy leaves them.',
    'Without --remove nothing is changed. What was written within --older-than stays, so that runs in progress are safe.',
    'A run that failed and whose journals are gone can be continued, but makes the calls of its unfinished step again.',
    'Needs no server.',
  ],
  examples: ['temper gc', 'temper gc --remove --older-than 1w'],
  arguments: {},
  flags: {
    remove: { kind: 'boolean', description: 'remove it; what is written meanwhile stays' },
    'older-than': {
      kind: 'text',
      placeholder: 'T',
      description: 'only what was written longer ago: 1d, 2w; at least 1d, as newer objects may be about to be named',
      default: '1d',
      form: { pattern: /^[1-9]\d{0,4}[dw]$/, rule: 'a number of days or weeks, at least 1d', example: '1w' },
    },
  },
  effect: 'changes',
  says: async (input, place) => textOf(await collect(place, { ...input, remove: false })),
  run: (input, place) => collect(place, input),
  lines: (found) => linesOf(found),
});

type Found = Awaited<ReturnType<typeof collect>>;

async function collect(place: Place, { remove, olderThan }: { remove: boolean; olderThan: string | null }) {
  const { planGarbage, removeGarbage } = await import('../store/records/retention/garbage.ts');
  const days = Number((olderThan ?? '1d').slice(0, -1)) * (olderThan?.endsWith('w') === true ? 7 : 1);
  const before = Date.now() - days * DAY_MS;
  const store = await place.store();
  const { objects, notes } = await (remove ? removeGarbage : planGarbage)(store, before);
  return {
    store: store.uri,
    removed: remove,
    writtenBefore: new Date(before).toISOString(),
    bytes: sizeOf(objects),
    objects: objects.map(({ kind, key, run, bytes, modifiedAtMs }) => {
      return { kind, key, run, bytes, modifiedAt: new Date(modifiedAtMs).toISOString() };
    }),
    notes,
  };
}

const sizeOf = (objects: readonly { readonly bytes: number }[]): number =>
  objects.reduce((total, { bytes }) => total + bytes, 0);

function linesOf({ objects, notes, bytes, removed }: Found): (string | Table)[] {
  const rows = Object.entries(KINDS).flatMap(([kind, label]) => {
    const found = objects.filter((object) => object.kind === kind);
    const runs = [...new Set(found.flatMap(({ run }) => run ?? []))].join(', ') || '–';
    return found.length === 0 ? [] : [[label, String(found.length), formatBytes(sizeOf(found)), runs]];
  });
  return [
    ...notes.map((note) => `note  ${note}`),
    ...(rows.length > 0 ? [{ head: ['garbage', 'objects', 'size', 'runs'], rows }] : []),
    describe(objects.length, bytes, removed),
  ];
}

function describe(count: number, bytes: number, isRemoved: boolean): string {
  if (count === 0) return 'no garbage';
  const what = `${plural(count, 'object')} with ${formatBytes(bytes)}`;
  return isRemoved ? `${what} removed` : `${what} would be removed; pass --remove to remove them`;
}

const textOf = (found: Found): string => describe(found.objects.length, found.bytes, false);
