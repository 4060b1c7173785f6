/** `--chat-template`: what is refused before anything starts, and what a run records of it. How it is used: gpu-worker/tests/server. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { proveChatTemplate } from '../../cli/planning/chat-template.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/train.ts';
import { tryCommand } from '../../cli/try/command.ts';
import { planTry } from '../../cli/try/plan-try.ts';
import { MAX_CHAT_TEMPLATE_BYTES } from '../../core/contract/wire-constants.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { fakePython } from './fake-python.ts';
import { writeAgent, writeModel } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf, runCli } from './run-cli.ts';

const TEMPLATE = 'said: {{ messages[0].content }}';
const SHA256 = hashBytes(Buffer.from(TEMPLATE));
const TOY = 'train agent.ts --base-model pocket --run demo --steps 3 --groups-per-step 2 --group-size 2'.split(' ');

let project: string;
beforeEach(async () => {
  project = temporaryProject();
  await writeAgent(project, { name: 'toy', scenarios: 'Array.from({ length: 12 }, (_, id) => ({ id: `s${id}` }))' });
  writeFileSync(join(project, 'chat.jinja'), TEMPLATE);
});

const complaint = (...flags: string[]) => complaintIn(project, [...TOY, ...flags]);

describe('a file that is no template is refused', () => {
  test('because it is missing, a folder, empty or too large', async () => {
    expect(await complaint('--chat-template', 'none.jinja')).toContain(
      'must be a file that can be read, got PROJECT/none.jinja',
    );
    mkdirSync(join(project, 'folder'));
    expect(await complaint('--chat-template', 'folder')).toContain('must be a file, PROJECT/folder is none');
    writeFileSync(join(project, 'empty.jinja'), '');
    expect(await complaint('--chat-template', 'empty.jinja')).toContain('must have 1 to 100000 bytes');
    writeFileSync(join(project, 'large.jinja'), 'x'.repeat(MAX_CHAT_TEMPLATE_BYTES + 1));
    expect(await complaint('--chat-template', 'large.jinja')).toContain('--chat-template must have 1 to 100000 bytes');
  });

  test.each([Buffer.from([0x7b, 0xff, 0xfe]), Buffer.from(' \n')])('because it is no text', async (bytes) => {
    writeFileSync(join(project, 'bad.jinja'), bytes);
    expect(await complaint('--chat-template', 'bad.jinja')).toMatch(
      /must be (?:text in UTF-8, PROJECT\/bad\.jinja is not|a Jinja template, PROJECT\/bad\.jinja is blank)/,
    );
  });
});

test('Python refuses a template that fails with the model, before anything is started', async () => {
  const refusal = "console.error('BadConfig: ' + JSON.stringify(input) + ' fails in line 7'); process.exit(2);";
  const env = fakePython(refusal);
  const { exitCode, stderr } = await runCli(project, [...TOY, '--chat-template', 'chat.jinja'], { env });
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('fails in line 7')]);
  expect(stderr).toContain(`{"model":"pocket","source":null,"chatTemplate":"${join(project, 'chat.jinja')}"}`);
});

test('the own template of a model that does not ship with Temper is tried, too, unless a run inherits one', async () => {
  const refusal = "console.error('BadConfig: ' + args[2] + JSON.stringify(input)); process.exit(2);";
  const env = fakePython(refusal);
  const folder = await writeModel(join(project, 'mine'), ['config.json', 'model.safetensors', 'chat_template.jinja']);
  const { exitCode, stderr } = await runCli(project, ['train', 'agent.ts', '--base-model', folder], { env });
  const words = `check_template{"model":"mine","source":"${folder}","chatTemplate":null}`;
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(words)]);
  const context = contextOf(trainCommand, project, ['agent.ts', '--base-model', folder], env);
  const own = { template: null, isInherited: false, baseModel: 'mine', models: { mine: folder } };
  await expect(proveChatTemplate(own, context)).rejects.toThrow(words);
  await proveChatTemplate({ ...own, isInherited: true }, context);
});

test('a model without a template of its own can be trained with one', async () => {
  const files = ['config.json', 'model.safetensors', 'tokenizer_config.json'];
  const folder = await writeModel(join(project, 'bare'), files);
  const words = ['agent.ts', '--base-model', folder, '--chat-template', 'chat.jinja'];
  const { config, template } = await planTrain(contextOf(trainCommand, project, words), 'estimate');
  expect([config.baseModel, config.rollout.chatTemplateSha256]).toEqual(['bare', SHA256]);
  expect(Buffer.from(template!.bytes).toString()).toBe(TEMPLATE);
});

describe('a run that exists', () => {
  beforeEach(async () => {
    await makeRun(await openStore(join(project, '.temper', 'store')), { chatTemplate: TEMPLATE });
  });

  test('goes on with its own template, whatever its file is called, and with no other', async () => {
    const go = (...flags: string[]) =>
      planTrain(contextOf(trainCommand, project, [...TOY.slice(1), ...flags]), 'estimate');
    writeFileSync(join(project, 'same.jinja'), TEMPLATE);
    expect((await go('--chat-template', 'same.jinja')).existing?.file.config.run).toBe('demo');
    writeFileSync(join(project, 'chat.jinja'), `${TEMPLATE}!`);
    await expect(go('--chat-template', 'chat.jinja')).rejects.toThrow(`--chat-template: "${SHA256}" → "`);
    await expect(go()).rejects.toThrow(`--chat-template: "${SHA256}" → null`);
  });

  test('hands its template to a fork, which may bring another', async () => {
    rmSync(join(project, 'chat.jinja'));
    writeFileSync(join(project, 'other.jinja'), 'other');
    const fork = async (...flags: string[]) => {
      const words = ['agent.ts', '--from', 'demo@2', '--run', 'new', ...flags];
      return (await planTrain(contextOf(trainCommand, project, words), 'estimate')).config.rollout.chatTemplateSha256;
    };
    expect(await fork()).toBe(SHA256);
    expect(await fork('--chat-template', 'other.jinja')).toBe(hashBytes(Buffer.from('other')));
  });

  test('is tried with its template, and another base model without it', async () => {
    const tried = async (...flags: string[]) =>
      (await planTry(contextOf(tryCommand, project, ['agent.ts', ...flags]))).rollout.chatTemplateSha256;
    expect(await tried('--model', 'demo@2')).toBe(SHA256);
    expect(await tried('--model', 'pocket')).toBeUndefined();
    expect(await tried('--model', 'pocket', '--chat-template', 'chat.jinja')).toBe(SHA256);
    const hosted = ['try', 'agent.ts', '--model', 'openai/gpt-5', '--chat-template', 'chat.jinja'];
    expect(await complaintIn(project, hosted, { env: { OPENAI_API_KEY: 'x' } })).toContain(
      '--chat-template has no effect on hosted models; leave it out',
    );
  });
});
