/**
 * Real processes, SIGKILL at points where they really do something. Whatever is killed: the run completes, every step is
 * committed once, no journaled call is executed again, and the bytes are those of the undisturbed run.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { executions, journaledCalls } from './journaled.ts';
import { Project, until, type Running } from './project.ts';

const agentFile = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const AGENTS = {
  'tic-tac-toe': agentFile('../../examples/tic-tac-toe/agent.ts'),
  'an agent that answers every error with a reward': agentFile('agents/swallowing.ts'),
};
const STEPS = 3;
const CONFIG = ['--base-model', 'pocket', '--steps', String(STEPS), '--groups-per-step', '6', '--group-size', '16'];
const FLAGS = [
  ...CONFIG,
  '--eval-scenarios',
  '8',
  '--seed',
  '5',
  '--learning-rate',
  '4e-3',
  '--continue-as-new-every',
  '2',
];

describe.each(Object.entries(AGENTS))('%s', (_, agent) => {
  const project = new Project();
  let stack: Running;
  let undisturbed: Record<string, string>;

  const train = (run: string) => project.start('train', agent, '--run', run, ...FLAGS);
  const manifest = (run: string, step: number) =>
    project.path('store', 'runs', run, 'branches', '0', 'steps', String(step), 'manifest.json');

  /** All that was promised, whatever happened on the way. */
  async function expectUndisturbed(run: string, running: Running): Promise<void> {
    const { code, output } = await running.ended;
    expect(code, output).toBe(0);
    expect(project.committed(run)).toEqual(undisturbed);
    const commits = project
      .log('gpu-worker')
      .filter(({ msg, run: of, found }) => msg === 'step committed' && of === run && found === false);
    const steps = commits.map(({ step }) => step);
    expect(new Set(steps).size, 'a step was committed twice').toBe(steps.length);
  }

  function expectExecutedOnce(calls: string[]): void {
    const counts = executions(project);
    expect(calls.length).toBeGreaterThan(0);
    expect(calls.filter((call) => (counts.get(call) ?? 0) > 1)).toEqual([]);
  }

  /** Journal of a step that is being played; at least a few answers stand in it. */
  async function untilPlaying(run: string, step: number): Promise<void> {
    await until(`${run} plays step ${step}`, () => journaledCalls(project, run, step).length > 4);
  }

  beforeAll(async () => {
    stack = project.start('dev', '--agent', agent);
    await until(
      'the stack runs',
      () => stack.output().includes('Ctrl-C ends it') || stack.child.exitCode !== null,
      180_000,
    );
    const { code, output } = await project.run('train', agent, '--run', 'undisturbed', ...FLAGS);
    expect(code, output).toBe(0);
    undisturbed = project.committed('undisturbed');
  });

  afterAll(async () => {
    stack.child.kill('SIGINT');
    await stack.ended;
    await project.close();
  });

  test('each step of the undisturbed run has an adapter of its own', () => {
    const adapters = Array.from(
      { length: STEPS + 1 },
      (_unused, step) => undisturbed[`0/checkpoints/${step}/adapter/adapter_model.safetensors`],
    );
    expect(adapters).not.toContain(undefined);
    expect(new Set(adapters).size).toBe(STEPS + 1);
  });

  test('the GPU worker is killed in the middle of train', async () => {
    const running = train('gpu-worker-killed');
    const begins = () =>
      project
        .log('gpu-worker')
        .some(({ msg, run, step }) => msg === 'step begins' && run === 'gpu-worker-killed' && step === 2);
    await until('step 2 is trained', begins);
    process.kill(project.pid('gpu-worker'), 'SIGKILL');
    expect(existsSync(manifest('gpu-worker-killed', 2)), 'killed too late').toBe(false);
    await expectUndisturbed('gpu-worker-killed', running);
  });

  test.each([
    { title: 'the TypeScript worker is killed in the middle of rollout', run: 'worker-killed', victim: 'worker-' },
    {
      title: 'the GPU worker is killed while the agents wait for its answers',
      run: 'engine-killed',
      victim: 'gpu-worker',
    },
    { title: "Temporal's server is killed", run: 'server-killed', victim: 'temporal-server' },
  ] as const)('$title', async ({ run, victim }) => {
    const running = train(run);
    await untilPlaying(run, 2);
    process.kill(project.pid(victim), 'SIGKILL');
    const calls = journaledCalls(project, run, 2);
    await expectUndisturbed(run, running);
    expectExecutedOnce(calls);
  });

  test('the command line is killed, with the whole stack behind it', async () => {
    stack.child.kill('SIGINT');
    await stack.ended;
    const first = train('cli-killed');
    await untilPlaying('cli-killed', 2);
    first.child.kill('SIGKILL');
    await first.ended;
    const calls = journaledCalls(project, 'cli-killed', 2);
    await until('nothing is left behind', () => project.alive().length === 0, 30_000);
    const second = train('cli-killed');
    await untilServers(project);
    await expectUndisturbed('cli-killed', second);
    expectExecutedOnce(calls);
  });

  async function untilServers(of: Project): Promise<void> {
    await until('a server runs', () => of.alive().includes('temporal-server'));
    expect(of.alive().filter((name) => name === 'temporal-server')).toHaveLength(1);
  }
});
