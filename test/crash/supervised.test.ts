/** A run that begins with examples and goes on with its agent, SIGKILL of the GPU worker in both stages, and examples again. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { readStackFile } from '../../workers/local-stack/protocol/stack-file.ts';
import { runTemper, startCommand } from '../e2e/command.ts';
import { fileURLToPath } from 'node:url';
import { AGENT, Project, until } from './project.ts';

const TEMPER = fileURLToPath(new URL('../../cli/temper.js', import.meta.url));
const EXAMPLES = 40;
const SUPERVISED = 6;
const WARM = ['--warm-start', 'chats.jsonl', '--warm-start-steps', String(SUPERVISED), '--warm-start-turns', 'last'];
const SIZE = ['--steps', '9', '--groups-per-step', '2', '--group-size', '8', '--eval-scenarios', '4', '--seed', '5'];
const LINE = ['--base-model', 'pocket', '--learning-rate', '0.005', ...SIZE, ...WARM];

const project = new Project({ folder: inject('project') });
const trainLine = (run: string) => ['train', AGENT, '--run', run, ...LINE];

async function killGpuWorker(): Promise<void> {
  const killed = project.pid('gpu-worker');
  process.kill(killed, 'SIGKILL');
  const children = () => readStackFile(project.path('stack.json'))?.children ?? [];
  const isAnother = ({ name, pid }: { name: string; pid: number }) => name === 'gpu-worker' && pid !== killed;
  await until('another GPU worker is there', () => children().some(isAnother), 60_000);
}

test('killed while it trains examples and again while it is played, a run ends with the same bytes and verifies', async () => {
  const chat = (number: number) => ({
    messages: [
      { role: 'user', content: `${number}*2=` },
      { role: 'assistant', content: String(number * 2) },
    ],
  });
  const lines = Array.from({ length: EXAMPLES }, (_, number) => `${JSON.stringify(chat(number))}\n`);
  writeFileSync(join(project.folder, 'chats.jsonl'), lines.join(''));
  const whole = await runTemper(project.folder, trainLine('warm-whole'));
  expect(whole.code, whole.stdout + whole.stderr).toBe(0);
  expect(whole.stdout).toMatch(/held-out loss +[\d.]+ → [\d.]+ nats per token \(4 held-out examples\)/);

  const killed = startCommand(project.folder, [process.execPath, TEMPER, ...trainLine('warm-killed')]);
  for (const step of [2, SUPERVISED + 1]) {
    const isTold = () => new RegExp(`^step +${step}/`, 'm').test(killed.stdout());
    await until(`step ${step} is told`, isTold, 120_000);
    await killGpuWorker();
  }
  const { code, stdout, stderr } = await killed.ended;
  expect(code, stdout + stderr).toBe(0);
  expect(project.committed('warm-killed')).toEqual(project.committed('warm-whole'));
  const verified = await runTemper(project.folder, ['verify', `warm-killed@${SUPERVISED}`]);
  expect(verified.stdout).toContain(
    `re-computed warm-killed@${SUPERVISED}: adapter and optimizer state have the same bytes`,
  );
  expect(verified.code, verified.stdout).toBe(0);

  await continueWithExamples('warm-whole');
});

/** Chats train the policy that the run ended with. */
async function continueWithExamples(parent: string): Promise<void> {
  const line = ['sft', 'chats.jsonl', '--from', parent, '--run', 'goes-on', '--steps', '2'];
  const { code, stdout, stderr } = await runTemper(project.folder, line);
  expect(code, stdout + stderr).toBe(0);
  const shown = await runTemper(project.folder, ['show', 'goes-on']);
  expect(shown.stdout).toContain(`\nparent     ${parent}@9\n`);
  const adapterOf = (run: string, step: number) =>
    readFileSync(project.path(`store/runs/${run}/branches/0/checkpoints/${step}/adapter/adapter_model.safetensors`));
  expect(adapterOf('goes-on', 0).equals(adapterOf(parent, 9))).toBe(true);
  const verified = await runTemper(project.folder, ['verify', 'goes-on', '--no-recompute']);
  expect(verified.code, verified.stdout).toBe(0);
}
