import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/train.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { PEFT_CONFIG, writePeftAdapter } from '../peft-folder.ts';
import { writeAgent } from './agents.ts';
import { contextOf } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

let project: string;
beforeEach(async () => {
  project = temporaryFolder();
  await writeAgent(project);
  await writeAdapter(PEFT_CONFIG);
});

const writeAdapter = (config: object, names?: string[]) => writePeftAdapter(join(project, 'adapter'), config, names);

const plan = async (...flags: string[]) =>
  planTrain(contextOf(trainCommand, project, ['agent.ts', '--base-model', 'pocket', ...flags]), 'estimate');
const planned = (...flags: string[]) => plan('--adapter', 'adapter', ...flags);
const refused = async (...flags: string[]) =>
  planned(...flags).then(
    () => 'planned',
    (error: Error) => error.message.replaceAll(project, '…'),
  );

describe('temper train --adapter', () => {
  test('the run has the adapter’s shape, and names its files by hash', async () => {
    const { config, adapterFiles } = await planned();
    const shape = { rank: 8, alpha: 24, targetModules: ['q_proj', 'v_proj'], layers: [1] };
    const lora = { ...shape, rslora: true, dora: false, dropout: 0 };
    expect(config.train.lora).toEqual(lora);
    const [weights, file] = adapterFiles.map((bytes) => hashBytes(bytes));
    expect(config.startAdapter).toMatchObject({ weights: { sha256: weights }, config: { sha256: file } });
    expect(JSON.stringify(config)).not.toContain(project);
    expect((await plan()).config).not.toHaveProperty('startAdapter');
    expect((await planned('--lora-rank', '8', '--lora-dropout', '0.1')).config.train.lora).toEqual({
      ...lora,
      dropout: 0.1,
    });
  });

  /** The adapter's configuration, flags, and what is said of them. */
  test.each<[config: object, flags: string, said: string]>([
    [{}, '--lora-rank 16', '--lora-rank must stay 8 (the run begins with --adapter …/adapter), got 16; leave it out'],
    [
      {},
      '--lora-layers 0-1',
      '--lora-layers must stay [1] (the run begins with --adapter …/adapter), got [0,1]; leave',
    ],
    [{}, '--full-fine-tuning', '--adapter and --full-fine-tuning exclude each other; leave one of them out'],
    [
      {},
      '--adapter nowhere',
      '--adapter must be a folder with adapter_config.json and adapter_model.safetensors, got …/',
    ],
    [
      { base_model_name_or_path: 'Qwen/Q@main' },
      '',
      'that --adapter …/adapter was trained on, Qwen/Q@main, got pocket',
    ],
    [
      { init_lora_weights: 'pissa' },
      '',
      '--adapter must not use init_lora_weights of PEFT, which Temper does not train',
    ],
    [{ rank_pattern: { q_proj: 4 } }, '', 'but …/adapter has {"q_proj":4}; pass an adapter without it'],
    ...['alora_invocation_tokens', 'of_later'].map((member): [object, string, string] => [
      { [member]: [260] },
      '',
      `--adapter must not use ${member} of PEFT`,
    ]),
    [
      { peft_type: 'IA3' },
      '',
      '--adapter must be a LoRA adapter as PEFT saves it, but adapter_config.json of …/adapter',
    ],
    [
      { use_dora: true },
      '--engine vllm',
      '--lora-dora needs the embedded engine: vLLM loads no adapters with magnitudes',
    ],
    [{}, '--engine vllm', 'planned'],
  ])('%j with %j', async (config, flags, said) => {
    await writeAdapter({ ...PEFT_CONFIG, ...config });
    expect(await refused(...flags.split(' ').filter(Boolean))).toContain(said);
  });

  test('weights that are no LoRA are refused', async () => {
    await writeAdapter(PEFT_CONFIG, ['base_model.model.wte.lora_embedding_A']);
    expect(await refused()).toContain(
      '--adapter must hold tensors named ….lora_A.weight, but adapter_model.safetensors',
    );
  });

  test('members that change nothing of what the adapter computes are read over, whoever added them', async () => {
    const nothing = { arrow_config: null, use_bdlora: false, of_a_later_version: {}, kept_modules: [] };
    const origin = { lora_dropout: 0.1, peft_version: '0.21.2', task_type: 'CAUSAL_LM', loftq_config: {} };
    await writeAdapter({ ...PEFT_CONFIG, ...nothing, ...origin, init_lora_weights: false });
    expect(await refused()).toBe('planned');
  });
});

test('a run on chats begins with it alike', async () => {
  const line = JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content: 'hello' })) });
  await writeFile(join(project, 'chats.jsonl'), `${line}\n${line.replace('hello', 'bye')}\n`);
  const words = ['chats.jsonl', '--base-model', 'pocket', '--adapter', 'adapter'];
  const sft = async (...flags: string[]) =>
    planTrain(contextOf(trainCommand, project, [...words, ...flags]), 'estimate');
  const { config, adapterFiles } = await sft();
  const trained = await planned();
  expect(config.startAdapter).toEqual(trained.config.startAdapter);
  expect(config.train.lora).toEqual(trained.config.train.lora);
  expect(adapterFiles).toEqual(trained.adapterFiles);
  await expect(sft('--lora-rank', '16')).rejects.toThrow('--lora-rank must stay 8 (the run begins with --adapter ');
  await expect(sft('--full-fine-tuning')).rejects.toThrow('--adapter and --full-fine-tuning exclude each other');
});
