/**
 * A script that owns its loop, and SIGKILL: of the script, of the TypeScript worker, of the GPU worker. It ends with the
 * bytes of an undisturbed one, as does one whose model has roles. TEMPER_OWN_LOOP_KILLS=10 kills ten times, TEMPER_OWN_LOOP_SEED=n at other moments.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, inject, test } from 'vitest';
import { permutation } from '../../core/plan/deal.ts';
import { createRandom, deriveSeed } from '../../core/numbers/seeds.ts';
import { codeCommand } from '../compiled.ts';
import { isNightly } from '../run/tier.ts';
import { Project, succeed, type Command } from '../stack.ts';
import { until } from '../until.ts';
import { paidTwice, readJournals, stepsCommittedTwice, type Journaled } from './evidence.ts';

const SIZES = ['--steps', '8', '--groups', '3', '--attempts', '6', '--eval-every', '4', '--eval-games', '12'];
const LOOP = [...codeCommand('examples/own-loop/loop.ts'), ...SIZES];
const ROLE_LOOP = codeCommand('test/crash/agents/role-loop.ts');
const KILLS = Number(process.env['TEMPER_OWN_LOOP_KILLS'] ?? 3);
const SEED = Number(process.env['TEMPER_OWN_LOOP_SEED'] ?? 1);
const LONGEST_PAUSE_MS = 900;
const WITHIN_MS = 300_000;
/** Each look reads the log of all that the stack played. */
const LOOK_MS = 100;
const VICTIMS = ['script', 'worker-', 'gpu-worker'] as const;

const NAME = `killed-${SEED}`;
const RUN = `tic-tac-toe.${NAME}`;

const project = new Project({ folder: inject('project') });

const start = (name: string, script = LOOP): Command => project.startLine([...script, '--name', name]);

/** Which files there are, and what is in them: the views on checkpoints among them. */
const bytesOf = (run: string) => project.committed(`tic-tac-toe.${run}`);

beforeAll(() => succeed(start('calm').ended));

test(`killed ${KILLS} times at random moments, a loop ends with the same bytes, and pays for nothing twice`, async () => {
  const random = createRandom(deriveSeed([SEED, 'own-loop']));
  const journals: Journaled[] = [];
  const killed: string[] = [];
  let script = start(NAME);
  while (killed.length < KILLS) {
    const before = project.callsOf(RUN);
    const goesOn = () => project.callsOf(RUN) > before || script.outcome() !== null;
    await until('work goes on', goesOn, WITHIN_MS, LOOK_MS);
    await sleep(random() * LONGEST_PAUSE_MS);
    if (script.outcome() !== null) break;
    // Each of them once before any of them again.
    const order = permutation(VICTIMS.length, deriveSeed([SEED, Math.floor(killed.length / VICTIMS.length)]));
    const victim = VICTIMS[order[killed.length % VICTIMS.length]!]!;
    journals.push(readJournals(project, RUN));
    if (victim === 'script') {
      script.child.kill('SIGKILL');
      await script.ended;
      script = start(NAME);
    } else process.kill(project.pid(victim), 'SIGKILL');
    killed.push(victim);
  }
  await succeed(script.ended);
  console.log(`killed ${killed.join(', ')}`);
  expect(killed.length, 'the loop must last longer than its kills').toBe(KILLS);
  expect(bytesOf(NAME)).toEqual(bytesOf('calm'));
  expect(stepsCommittedTwice(project, RUN)).toBe(0);
  expect(journals.reduce((sum, journaled) => sum + paidTwice(project, journaled), 0)).toBe(0);
});

test('a finished loop that is started again does nothing more, and is whole', async () => {
  const calls = project.callsOf(RUN);
  await succeed(start(NAME).ended);
  expect(project.callsOf(RUN)).toBe(calls);
  expect(await project.done('verify', RUN)).toContain('same bytes');
});

test('a script with roles that is killed between its steps ends with both policies of an undisturbed one', async () => {
  await succeed(start('calm', ROLE_LOOP).ended);
  const killed = start('killed', ROLE_LOOP);
  await until('a step is trained', () => /^step 1$/m.test(killed.output()) || killed.outcome() !== null);
  killed.child.kill('SIGKILL');
  await killed.ended;
  await succeed(start('killed', ROLE_LOOP).ended);
  expect(project.committed('roles.killed')).toEqual(project.committed('roles.calm'));
  // A step made again takes seven seconds of processor time, and the loop above has one on each landing.
  const isWhole = await project.done('verify', 'roles.killed', ...(isNightly() ? [] : ['--no-recompute']));
  expect(isWhole).toContain(isNightly() ? 'same bytes' : 'roles.killed is intact');
});
