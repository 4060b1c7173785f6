/**
 * `npm run bench -- ui`: `temper ui` on a store of 10,000 attempts, and what it costs a run. The store is made first, which
 * takes minutes; `--store DIR` names one that `bench/ui-store.ts` has made.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { countFlag, readNames, type Bench, type Flags } from './bench.ts';
import { measureRun } from './ui/measure-run.ts';
import { measureViews } from './ui/measure-views.ts';
import { readProgram } from './ui/ui-process.ts';
import { writeUiStore } from './ui/write-store.ts';

const PARTS = ['views', 'run'] as const;

export const ui: Bench = {
  name: 'ui',
  summary: 'temper ui: first view, further views, index and memory on a store of 1 GB; what ten clients cost a run',
  flags: {
    parts: PARTS.join(','),
    of: 'package',
    store: '',
    steps: '2000',
    pairs: '8',
    seconds: '30',
    clients: '10',
    groups: '2',
    'group-size': '4',
    'worker-heap-mib': '4096',
  },
  run: runBench,
};

async function runBench(flags: Flags): Promise<object> {
  const parts = readNames('parts', flags['parts']!, PARTS);
  const folder = mkdtempSync(join(tmpdir(), 'temper-bench-ui-'));
  try {
    const views = parts.includes('views') ? await onStore(flags, folder) : {};
    const run = parts.includes('run') ? { run: await measureRun(flags, join(folder, 'cache')) } : {};
    return { ...views, ...run };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function onStore(flags: Flags, folder: string): Promise<object> {
  const store = flags['store'] || join(folder, 'store');
  if (!flags['store']) await writeUiStore({ folder: store, steps: countFlag(flags, 'steps') });
  return measureViews({ program: readProgram(flags['of']!), store, cache: folder, cwd: folder });
}
