/**
 * An agent that is a program in Python, through the gateway, in a real stack: it trains the very weights that its twin in
 * TypeScript trains, though its worker is killed in the middle of attempts; nothing is paid for twice or left behind.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import { paidTwice, readJournals } from './evidence.ts';
import { Project, until } from './project.ts';

const STEPS = 2;
const SIZES = ['--steps', String(STEPS), '--groups-per-step', '2', '--group-size', '4', '--eval-scenarios', '2'];
const FLAGS = ['--base-model', 'pocket', '--learning-rate', '2e-3', ...SIZES];
/** Beyond the evaluation's, in the middle of the first step. */
const CALLS_BEFORE_KILL = 12;

const project = new Project({ folder: inject('project') });
const train = (run: 'inside' | 'outside') => {
  const agent = fileURLToPath(new URL(`agents/${run}.ts`, import.meta.url));
  return project.start('train', agent, '--run', run, ...FLAGS);
};

const evidence = {
  journals: (run: string) => [project.path('store', 'runs', run, 'journal')],
  log: project.log.bind(project),
};

const callsOf = (run: string): number =>
  project.log('gpu-worker').filter(({ msg, call }) => msg === 'call' && String(call).startsWith(`${run}.`)).length;

/** Processes of the program, and what it started. */
function programs(): string[] {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && /outside\.py|sleep 6001/.test(commandLine(pid)));
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

function adapters(run: string): string[] {
  return Array.from({ length: STEPS + 1 }, (_, step) => {
    const file = project.path('store', 'runs', run, 'branches', '0', 'steps', String(step), 'manifest.json');
    return (JSON.parse(readFileSync(file, 'utf8')) as { adapter: { sha256: string } }).adapter.sha256;
  });
}

test('a program trains what its twin in TypeScript trains, killed with its worker in between', async () => {
  const inside = await train('inside').ended;
  expect(inside.code, inside.output).toBe(0);
  const outside = train('outside');
  const isInStep = () => callsOf('outside') >= CALLS_BEFORE_KILL && programs().length > 1;
  await until('programs play', () => isInStep() || outside.child.exitCode !== null, 300_000, 20);
  const before = programs();
  const journaled = readJournals(evidence, 'outside');
  process.kill(project.pid('worker-outside'), 'SIGKILL');
  await until('its programs are gone', () => !programs().some((pid) => before.includes(pid)), 60_000, 20);
  const { code, output } = await outside.ended;
  expect(code, output).toBe(0);
  expect(journaled.calls.size).toBeGreaterThan(0);
  expect(paidTwice({ ...evidence, effects: () => [] }, journaled)).toBe(0);
  expect(programs()).toEqual([]);
  expect(adapters('outside')).toEqual(adapters('inside'));
  expect(new Set(adapters('outside')).size).toBe(STEPS + 1);
});
