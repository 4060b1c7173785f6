/** Runs that train all weights: what `temper train`, `sft`, `fork` and `export` plan for them, and what they refuse. */
import { readFileSync } from 'node:fs';
import { writeFile as write } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { forkCommand } from '../../cli/fork/command.ts';
import { planFork } from '../../cli/fork/plan-fork.ts';
import { sftCommand } from '../../cli/sft/command.ts';
import { planSft } from '../../cli/sft/plan-sft.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/plan-train.ts';
import { configDetails } from '../../core/describe-config.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { fakePrograms } from '../workers/install/fake-programs.ts';
import { writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf, runCli } from './run-cli.ts';

let project: string;
let store: Store;

beforeEach(async () => {
  project = await temporaryProject();
  await writeAgent(project, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
  store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { run: 'full', train: { lora: null } });
  await makeRun(store, { run: 'adapted' });
});

const FULL = '--full-fine-tuning';
const NEW = ['agent.ts', '--run', 'new', '--base-model', 'pocket'];
const refusal = (...flags: string[]) => complaintIn(project, ['train', ...NEW, ...flags]);
const forking = (...words: string[]) => complaintIn(project, ['fork', ...words, '--run', 'new']);

test('the run has no LoRA, and a learning rate of its own', async () => {
  const { config } = await planTrain(contextOf(trainCommand, project, [...NEW, FULL]));
  expect([config.train.lora, config.learningRate]).toEqual([null, 5e-6]);
  expect(configDetails(config)).toContain('learning rate 0.000005 (constant), full fine-tuning, seed 1');
  const chat = (content: string) =>
    JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content })) });
  await write(join(project, 'chats.jsonl'), ['a', 'b', 'c'].map(chat).join('\n'));
  const words = ['chats.jsonl', '--base-model', 'pocket', FULL, '--learning-rate', '0.5'];
  const supervised = (await planSft(contextOf(sftCommand, project, words))).config;
  expect([supervised.train.lora, supervised.learningRate]).toEqual([null, 0.5]);
  // A fork inherits it.
  const fork = await planFork(contextOf(forkCommand, project, ['full@2', 'agent.ts', '--run', 'new']));
  expect(fork.config.train.lora).toBeNull();
});

test('what needs an adapter is refused with the reason', async () => {
  expect(await refusal(FULL, '--lora-dropout', '0.1')).toContain('--lora-dropout has no effect with --full');
  expect(await refusal(FULL, '--lora-dora')).toContain('--lora-dora has no effect with --full-fine-tuning');
  await write(join(project, 'temporal.config.ts'), `export default { train: { 'lora-rank': 4 } };`);
  expect(await refusal(FULL)).toContain('--lora-rank has no effect with --full-fine-tuning');
  await write(join(project, 'temporal.config.ts'), `export default {};`);
  expect(await refusal(FULL, '--devices', '2', '--shard-base-model')).toContain('only frozen weights can be sharded');
  expect(await refusal(FULL, '--load-in-4bit')).toContain('must come with a LoRA adapter to train');
  expect(await forking('full@2', 'agent.ts', '--load-in-4bit')).toContain('weights in 4 bits are frozen');
  await write(join(project, 'temporal.config.ts'), `export default { engine: { loadIn4bit: true } };`);
  expect(await refusal(FULL)).toContain('got --full-fine-tuning');
  await write(join(project, 'temporal.config.ts'), `export default {};`);
  expect(await refusal(FULL, '--engine', 'vllm')).toContain('--full-fine-tuning needs the embedded engine: vLLM');
});

test('a run, its forks and its reference train the same', async () => {
  const again = 'train agent.ts --base-model pocket --groups-per-step 2 --group-size 2 --steps 3'.split(' ');
  expect(await complaintIn(project, [...again, '--run', 'adapted', FULL, '--learning-rate', '5e-5'])).toContain(
    'the run adapted exists with another configuration (recorded → requested): --full-fine-tuning: "a LoRA adapter" → "all weights"',
  );
  expect(await forking('full@2', 'agent.ts', '--lora-rank', '8')).toContain('--full-fine-tuning must stay on');
  expect(await forking('adapted@2', 'agent.ts', FULL)).toContain('--full-fine-tuning must stay off');
  const kl = ['--kl-coefficient', '0.1', '--kl-reference'];
  expect(await refusal(FULL, ...kl, 'adapted@2')).toContain('adapted@2 has a LoRA adapter, the run trains all weights');
  expect(await refusal(...kl, 'full@2')).toContain('full@2 has all weights, the run trains a LoRA adapter');
});

test('an export is the whole model', async () => {
  const exporting = (...words: string[]) => ['export', 'full@2', '--to', 'out', ...words];
  expect(await complaintIn(project, exporting('--format', 'peft'))).toContain('peft needs an adapter, but full@2');
  const programs = fakePrograms();
  onTestFinished(() => programs.remove());
  programs.add(
    'python',
    `if (args[0] === '-c') console.log('missing:'); else console.log('{"revision":null,"kept":0.9312}');`,
  );
  const env = { ...programs.env, TEMPER_PYTHON: join(programs.folder, 'bin', 'python') };
  const { exitCode, stdout, stderr } = await runCli(project, exporting('--dtype', 'bfloat16'), { env });
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toContain('full@2: all weights in bfloat16, 1 file');
  const card = readFileSync(join(project, 'out', 'README.md'), 'utf8');
  expect(card).toContain('All of its weights were trained.');
  expect(card).toContain('| training | full fine-tuning |');
  expect(card).toContain('bfloat16; 93.120 % of what training changes is left after rounding');
  expect(card).toContain('1. run full: the weights of the base model');
  expect(card).not.toMatch(/LoRA|PEFT|adapter/);
});
