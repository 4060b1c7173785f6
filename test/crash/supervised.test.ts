/** A run that begins with examples and goes on with its agent, SIGKILL of the GPU worker in both stages, and examples again. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { Project, succeed, ticTacToe } from '../stack.ts';
import { until } from '../until.ts';

const EXAMPLES = 40;
const SUPERVISED = 6;
const WARM = ['--warm-start', 'chats.jsonl', '--warm-start-steps', String(SUPERVISED), '--turns', 'last'];
const SIZE = ['--steps', '9', '--groups-per-step', '2', '--group-size', '8', '--eval-scenarios', '4', '--seed', '5'];
const LINE = ['--base-model', 'pocket', '--learning-rate', '0.005', ...SIZE, ...WARM];

const project = new Project({ folder: inject('project') });
const trainLine = (run: string) => ['train', ticTacToe(), '--run', run, ...LINE];

test('killed while it trains examples and again while it is played, a run ends with the same bytes and verifies', async () => {
  const chat = (number: number) => ({
    messages: [
      { role: 'user', content: `${number}*2=` },
      { role: 'assistant', content: String(number * 2) },
    ],
  });
  const lines = Array.from({ length: EXAMPLES }, (_, number) => `${JSON.stringify(chat(number))}\n`);
  writeFileSync(join(project.folder, 'chats.jsonl'), lines.join(''));
  expect(await project.done(...trainLine('warm-whole'))).toMatch(
    /held-out loss +[\d.]+ → [\d.]+ nats per token \(4 held-out examples\)/,
  );

  const killed = project.start(...trainLine('warm-killed'));
  for (const step of [2, SUPERVISED + 1]) {
    const isTold = () => new RegExp(`^step +${step}/`, 'm').test(killed.stdout());
    await until(`step ${step} is told`, isTold);
    await project.killGpuWorker();
  }
  await succeed(killed.ended);
  expect(project.committed('warm-killed')).toEqual(project.committed('warm-whole'));
  expect(await project.done('verify', `warm-killed@${SUPERVISED}`)).toContain(
    `re-computed warm-killed@${SUPERVISED}: adapter and optimizer state have the same bytes`,
  );

  await continueWithExamples('warm-whole');
});

/** Chats train the policy that the run ended with. */
async function continueWithExamples(parent: string): Promise<void> {
  const line = ['train', 'chats.jsonl', '--from', parent, '--run', 'goes-on', '--steps', '2'];
  await project.done(...line);
  expect(await project.done('show', 'goes-on')).toContain(`\nparent     ${parent}@9\n`);
  const adapterOf = (run: string, step: number) =>
    readFileSync(project.path(`store/runs/${run}/branches/0/checkpoints/${step}/adapter/adapter_model.safetensors`));
  expect(adapterOf('goes-on', 0).equals(adapterOf(parent, 9))).toBe(true);
  await project.done('verify', 'goes-on', '--no-recompute');
}
