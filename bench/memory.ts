/** `npm run bench -- memory`: compares the plan of `temper doctor model` with a random model's use. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTools } from '../test/run/tools.ts';
import type { Bench, Flags } from './bench.ts';
import { runJsonScript, runScript } from './python.ts';

const SCRIPT = 'memory.py';
const WANTED = 0.1;
/** Rows with their flags. Each takes less than 12 GiB. */
const ROWS: readonly (readonly string[])[] = [
  ['train', '--tokens', '1000'],
  ['train', '--tokens', '2000'],
  ['train', '--tokens', '4000', '--recompute', 'yes'],
  ['train', '--tokens', '1000', '--rows', '4', '--recompute', 'chosen'],
  ['serve'],
];

export const memory: Bench = {
  name: 'memory',
  summary: 'planned and measured memory of a random model of 0.5 B parameters, dense or a mixture of experts',
  flags: { kinds: 'dense,mixture', dtypes: 'float32,bfloat16' },
  run,
};

interface Measured {
  plannedMiB: number;
  measuredMiB: number;
  ratio: number;
}

async function run(flags: Flags): Promise<object> {
  const { python } = await openTools();
  const rows: (Measured & { row: string })[] = [];
  for (const kind of flags['kinds']!.split(',')) {
    const folder = mkdtempSync(join(tmpdir(), 'temper-bench-memory-'));
    try {
      await runScript(python, SCRIPT, ['make', '--folder', folder, '--kind', kind]);
      for (const dtype of flags['dtypes']!.split(',')) {
        for (const words of ROWS) {
          const measured = await runJsonScript<Measured>(python, SCRIPT, [
            ...words,
            '--folder',
            folder,
            '--dtype',
            dtype,
          ]);
          const row = { row: `${kind} ${dtype} ${words.join(' ')}`, ...measured };
          console.log(`  ${row.row.padEnd(60)} ${row.plannedMiB} / ${row.measuredMiB} MiB = ${row.ratio.toFixed(3)}`);
          rows.push(row);
        }
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
  const withinWanted = rows.every(({ ratio }) => Math.abs(ratio - 1) <= WANTED);
  return { rows, withinWanted, wanted: WANTED };
}
