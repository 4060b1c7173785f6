/**
 * An agent that is a program in Python, through the gateway, in a real stack: it trains the very weights that its twin in
 * TypeScript trains, though its worker is killed in the middle of attempts; nothing is paid for twice or left behind.
 */
import { readFileSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { codeFile } from '../compiled.ts';
import { processesLike } from '../processes.ts';
import { Project, succeed } from '../stack.ts';
import { until } from '../until.ts';
import { paidTwice, readJournals } from './evidence.ts';

const STEPS = 2;
const SIZES = ['--steps', String(STEPS), '--groups-per-step', '2', '--group-size', '4', '--eval-scenarios', '2'];
const FLAGS = ['--base-model', 'pocket', '--learning-rate', '2e-3', ...SIZES];
/** Beyond the evaluation's, in the middle of the first step. */
const CALLS_BEFORE_KILL = 12;

const project = new Project({ folder: inject('project') });
const train = (run: 'inside' | 'outside') =>
  project.start('train', codeFile(`test/crash/agents/${run}.ts`), '--run', run, ...FLAGS);

/** Processes of the program, and what it started. */
const programs = (): number[] => processesLike((line) => /outside\.py|sleep 6001/.test(line));

function adapters(run: string): string[] {
  return Array.from({ length: STEPS + 1 }, (_, step) => {
    return (JSON.parse(readFileSync(project.manifest(run, step), 'utf8')) as { adapter: { sha256: string } }).adapter
      .sha256;
  });
}

test('a program trains what its twin in TypeScript trains, killed with its worker in between', async () => {
  await succeed(train('inside').ended);
  const outside = train('outside');
  const isInStep = () => project.callsOf('outside') >= CALLS_BEFORE_KILL && programs().length > 1;
  await until('programs play', () => isInStep() || outside.outcome() !== null, 300_000, 20);
  const before = programs();
  const journaled = readJournals(project, 'outside');
  process.kill(project.pid('worker-outside'), 'SIGKILL');
  await until('its programs are gone', () => !programs().some((pid) => before.includes(pid)));
  await succeed(outside.ended);
  expect(journaled.calls.size).toBeGreaterThan(0);
  expect(paidTwice(project, journaled)).toBe(0);
  expect(programs()).toEqual([]);
  expect(adapters('outside')).toEqual(adapters('inside'));
  expect(new Set(adapters('outside')).size).toBe(STEPS + 1);
});
