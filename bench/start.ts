/** `npm run bench -- start`: what the command line takes before any work, as processor time of `temper --help`. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { countFlag, median, showSpread, spread, type Bench, type Flags } from './bench.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const WANTED_MS = 150;

/** The package has compiled files; a clone loads tsx first, which alone takes longer than the rest. */
const LINES = {
  bare: ['-e', '0'],
  tsx: [join(ROOT, 'workers/typescript.js')],
  package: [join(ROOT, 'dist/cli/temper.js'), '--help'],
  clone: [join(ROOT, 'cli/temper.js'), '--help'],
} as const;
type Name = keyof typeof LINES;
const NAMES = Object.keys(LINES) as Name[];

/** Writes the processor time of its process, threads included, when the process ends. */
const METER = "process.on('exit', () => require('node:fs').writeFileSync(3, JSON.stringify(process.cpuUsage())));";

export const start: Bench = {
  name: 'start',
  summary: 'processor time of `temper --help` over `node -e 0`, of the package (built first) and of a clone',
  flags: { rounds: '20' },
  run: (flags) => Promise.resolve(run(flags)),
};

function run(flags: Flags): object {
  const rounds = countFlag(flags, 'rounds');
  execFileSync('npm', ['run', 'build'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const folder = mkdtempSync(join(tmpdir(), 'temper-bench-start-'));
  const times: Record<Name, number[]> = { bare: [], tsx: [], package: [], clone: [] };
  try {
    const meter = join(folder, 'meter.cjs');
    writeFileSync(meter, METER);
    // One round more: the first one fills the caches of files.
    for (let round = 0; round <= rounds; round++)
      for (const name of NAMES) times[name].push(measure(['--require', meter, ...LINES[name]]));
  } finally {
    rmSync(folder, { recursive: true });
  }
  console.log(`processor time in ms, median (min–max) of ${rounds} rounds`);
  for (const name of NAMES) console.log(`  ${name.padEnd(8)} ${showSpread(times[name].slice(1), 0)}`);
  const bare = median(times.bare.slice(1));
  const overBareMs = median(times.package.slice(1)) - bare;
  console.log(`  temper --help over bare: ${overBareMs.toFixed(0)} ms, wanted at most ${WANTED_MS}`);
  const spreads = Object.fromEntries(NAMES.map((name) => [name, spread(times[name].slice(1))]));
  return { rounds, ...spreads, overBareMs, wantedMs: WANTED_MS, isWithin: overBareMs <= WANTED_MS };
}

function measure(line: readonly string[]): number {
  const { status, output } = spawnSync(process.execPath, line, { stdio: ['ignore', 'ignore', 'inherit', 'pipe'] });
  if (status !== 0) throw new Error(`node ${line.join(' ')} ended with ${status}`);
  const { user, system } = JSON.parse(String(output[3])) as NodeJS.CpuUsage;
  return (user + system) / 1000;
}
