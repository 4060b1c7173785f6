import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { sftCommand } from '../../cli/sft/command.ts';
import { planSft } from '../../cli/sft/plan-sft.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/plan-train.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { PEFT_CONFIG, writePeftAdapter } from '../peft-folder.ts';
import { writeAgent } from './agents.ts';
import { temporaryFolder } from './fixture-store.ts';
import { contextOf } from './run-cli.ts';

let project: string;
beforeEach(async () => {
  project = await temporaryFolder();
  await writeAgent(project);
  await writeAdapter(PEFT_CONFIG);
});

const writeAdapter = (config: object, names?: string[]) => writePeftAdapter(join(project, 'adapter'), config, names);

const plan = (...flags: string[]) =>
  planTrain(contextOf(trainCommand, project, ['agent.ts', '--base-model', 'pocket', ...flags]));
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

  test('another rank, scale or base model is refused with both figures', async () => {
    expect(await refused('--lora-rank', '16')).toMatchInlineSnapshot(
      `"--lora-rank must stay 8 (the run begins with --adapter …/adapter), got 16; leave it out"`,
    );
    expect(await refused('--lora-layers', '0-1')).toMatchInlineSnapshot(
      `"--lora-layers must stay [1] (the run begins with --adapter …/adapter), got [0,1]; leave it out"`,
    );
    expect(await refused('--lora-dora')).toMatchInlineSnapshot(
      `"--lora-dora must stay false (the run begins with --adapter …/adapter), got true; leave it out"`,
    );
    await writeAdapter({ ...PEFT_CONFIG, base_model_name_or_path: 'Qwen/Qwen3-4B@main' });
    expect(await refused()).toMatchInlineSnapshot(
      `"--base-model must be the model that --adapter …/adapter was trained on, Qwen/Qwen3-4B@main, got pocket; pass that one, or correct base_model_name_or_path in its adapter_config.json if both are the same model"`,
    );
  });

  test('what Temper does not train is refused, and so is what is no adapter', async () => {
    await writeAdapter({ ...PEFT_CONFIG, init_lora_weights: 'pissa' });
    expect(await refused()).toMatchInlineSnapshot(
      `"--adapter must not use init_lora_weights of PEFT, which Temper does not train, but …/adapter has "pissa"; pass an adapter without it"`,
    );
    await writeAdapter({ ...PEFT_CONFIG, rank_pattern: { q_proj: 4 } });
    expect(await refused()).toMatchInlineSnapshot(
      `"--adapter must not use rank_pattern of PEFT, which Temper does not train, but …/adapter has {"q_proj":4}; pass an adapter without it"`,
    );
    await writeAdapter({ ...PEFT_CONFIG, alora_invocation_tokens: [260] });
    expect(await refused()).toMatchInlineSnapshot(
      `"--adapter must not use alora_invocation_tokens of PEFT, which Temper does not train, but …/adapter has [260]; pass an adapter without it"`,
    );
    for (const member of ['arrow_config', 'use_bdlora', 'velora_config', 'monteclora_config', 'of_a_later_version']) {
      await writeAdapter({ ...PEFT_CONFIG, [member]: { rank: 4 } });
      expect(await refused()).toContain(`--adapter must not use ${member} of PEFT`);
    }
    await writeAdapter({ ...PEFT_CONFIG, peft_type: 'IA3' });
    expect(await refused()).toMatchInlineSnapshot(
      `"--adapter must be a LoRA adapter as PEFT saves it, but adapter_config.json of …/adapter has peft_type: Invalid input: expected "LORA"; pass another folder"`,
    );
    await writeAdapter(PEFT_CONFIG, ['base_model.model.wte.lora_embedding_A']);
    expect(await refused()).toMatchInlineSnapshot(
      `"--adapter must hold tensors named ….lora_A.weight, but adapter_model.safetensors of …/adapter has none; pass another folder"`,
    );
    expect(await refused('--adapter', 'nowhere')).toMatchInlineSnapshot(
      `"--adapter must be a folder with adapter_config.json and adapter_model.safetensors, got …/nowhere (adapter_config.json: ENOENT); save it with PEFT's save_pretrained"`,
    );
  });

  test('members that change nothing of what the adapter computes are read over, whoever added them', async () => {
    const nothing = { arrow_config: null, use_bdlora: false, of_a_later_version: {}, kept_modules: [] };
    const origin = { lora_dropout: 0.1, peft_version: '0.21.2', task_type: 'CAUSAL_LM', loftq_config: {} };
    await writeAdapter({ ...PEFT_CONFIG, ...nothing, ...origin, init_lora_weights: false });
    expect(await refused()).toBe('planned');
  });

  test('all weights are not trained from an adapter', async () => {
    expect(await refused('--full-fine-tuning')).toMatchInlineSnapshot(
      `"--adapter …/adapter has no effect with --full-fine-tuning (all weights are trained, without an adapter); leave one of them out"`,
    );
  });

  test('DoRA is refused where vLLM samples', async () => {
    expect(await refused('--engine', 'vllm')).toBe('planned');
    await writeAdapter({ ...PEFT_CONFIG, use_dora: true });
    expect(await refused('--engine', 'vllm')).toMatchInlineSnapshot(
      `"--lora-dora needs the embedded engine: vLLM loads no adapters with magnitudes (DoRA); pass --engine embedded, or leave --lora-dora out"`,
    );
  });
});

test('temper sft --adapter begins with it alike', async () => {
  const line = JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content: 'hello' })) });
  await writeFile(join(project, 'chats.jsonl'), `${line}\n${line.replace('hello', 'bye')}\n`);
  const words = ['chats.jsonl', '--base-model', 'pocket', '--adapter', 'adapter'];
  const sft = (...flags: string[]) => planSft(contextOf(sftCommand, project, [...words, ...flags]));
  const { config, adapterFiles } = await sft();
  const trained = await planned();
  expect(config.startAdapter).toEqual(trained.config.startAdapter);
  expect(config.train.lora).toEqual(trained.config.train.lora);
  expect(adapterFiles).toEqual(trained.adapterFiles);
  await expect(sft('--lora-rank', '16')).rejects.toThrow('--lora-rank must stay 8 (the run begins with --adapter ');
  await expect(sft('--full-fine-tuning')).rejects.toThrow('has no effect with --full-fine-tuning');
});
