/**
 * A script that owns its loop, and SIGKILL: of the script, of the TypeScript worker, of the GPU worker. It ends with the
 * bytes of an undisturbed one, as does one whose model has roles. TEMPER_OWN_LOOP_KILLS=10 kills ten times, TEMPER_OWN_LOOP_SEED=n at other moments.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { beforeAll, expect, inject, test } from 'vitest';
import { permutation } from '../../core/plan-deal.ts';
import { createRandom, deriveSeed } from '../../core/seeds.ts';
import { nodeFlags } from '../../workers/process/module-path.ts';
import { paidTwice, readJournals, stepsCommittedTwice, type Journaled } from './evidence.ts';
import { Project, until } from './project.ts';

const LOOP = fileURLToPath(new URL('../../examples/own-loop/loop.ts', import.meta.url));
const ROLE_LOOP = fileURLToPath(new URL('agents/role-loop.ts', import.meta.url));
const SIZES = ['--steps', '8', '--groups', '3', '--attempts', '6', '--eval-every', '4', '--eval-games', '12'];
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

interface Script {
  child: ChildProcess;
  ended: Promise<number | null>;
  output: () => string;
}

function start(name: string, script: readonly string[] = [LOOP, ...SIZES]): Script {
  const child = spawn(process.execPath, [...nodeFlags(), ...script, '--name', name], {
    cwd: project.folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += String(text)));
  return { child, output: () => output, ended: once(child, 'close').then(([code]) => code as number | null) };
}

const callsOf = (run: string): number =>
  project.log('gpu-worker').filter(({ msg, call }) => msg === 'call' && String(call).startsWith(`${run}.`)).length;

/** Which files there are, and what is in them: the views on checkpoints among them. */
const bytesOf = (run: string) => project.committed(`tic-tac-toe.${run}`);

beforeAll(async () => {
  const calm = start('calm');
  expect(await calm.ended, calm.output()).toBe(0);
});

test(`killed ${KILLS} times at random moments, a loop ends with the same bytes, and pays for nothing twice`, async () => {
  const random = createRandom(deriveSeed([SEED, 'own-loop']));
  const evidence = {
    journals: (run: string) => [project.path('store', 'runs', run, 'journal')],
    log: project.log.bind(project),
    effects: () => [],
  };
  const journals: Journaled[] = [];
  const killed: string[] = [];
  let script = start(NAME);
  while (killed.length < KILLS) {
    const before = callsOf(RUN);
    const goesOn = () => callsOf(RUN) > before || script.child.exitCode !== null;
    await until('work goes on', goesOn, WITHIN_MS, LOOK_MS);
    await sleep(random() * LONGEST_PAUSE_MS);
    if (script.child.exitCode !== null) break;
    // Each of them once before any of them again.
    const order = permutation(VICTIMS.length, deriveSeed([SEED, Math.floor(killed.length / VICTIMS.length)]));
    const victim = VICTIMS[order[killed.length % VICTIMS.length]!]!;
    journals.push(readJournals(evidence, RUN));
    if (victim === 'script') {
      script.child.kill('SIGKILL');
      await script.ended;
      script = start(NAME);
    } else process.kill(project.pid(victim), 'SIGKILL');
    killed.push(victim);
  }
  expect(await script.ended, script.output()).toBe(0);
  console.log(`killed ${killed.join(', ')}`);
  expect(killed.length, 'the loop must last longer than its kills').toBe(KILLS);
  expect(bytesOf(NAME)).toEqual(bytesOf('calm'));
  expect(stepsCommittedTwice(evidence, RUN)).toBe(0);
  expect(journals.reduce((sum, journaled) => sum + paidTwice(evidence, journaled), 0)).toBe(0);
});

test('a finished loop that is started again does nothing more, and is whole', async () => {
  const calls = callsOf(RUN);
  const again = start(NAME);
  expect(await again.ended, again.output()).toBe(0);
  expect(callsOf(RUN)).toBe(calls);
  const { code, output } = await project.run('verify', RUN);
  expect(code, output).toBe(0);
  expect(output).toContain('same bytes');
});

test('a script with roles that is killed between its steps ends with both policies of an undisturbed one', async () => {
  const calm = start('calm', [ROLE_LOOP]);
  expect(await calm.ended, calm.output()).toBe(0);
  const killed = start('killed', [ROLE_LOOP]);
  await until('a step is trained', () => /^step 1$/m.test(killed.output()) || killed.child.exitCode !== null);
  killed.child.kill('SIGKILL');
  await killed.ended;
  const again = start('killed', [ROLE_LOOP]);
  expect(await again.ended, again.output()).toBe(0);
  const bytes = project.committed('roles.calm');
  expect(project.committed('roles.killed')).toEqual(bytes);
  const { code, output } = await project.run('verify', 'roles.killed');
  expect(code, output).toBe(0);
  expect(output).toContain('same bytes');
});
