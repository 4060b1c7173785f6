/** A GGUF file as the base model, or another file: refused at one place for every command, before anything is started. */
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { write, writeAgent, writeModel } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn } from './run-cli.ts';

let project: string;
let agent: string;
let file: string;

const complaint = (args: readonly string[]) => complaintIn(project, args);

beforeEach(async () => {
  project = temporaryProject();
  agent = await writeAgent(project);
  await writeModel(join(project, "a user's"), ['tiny.Q4_1.gguf']);
  file = join(project, "a user's", 'tiny.Q4_1.gguf');
});

test('is refused with the lines that convert it', async () => {
  const told = await complaint(['train', agent, '--base-model', file]);
  expect(told).toMatch(/^temper: a base model must be a folder .* with \.safetensors files, got the GGUF file /);
  expect(told).toContain("python -m pip install gguf torch 'transformers>=5.23' && python -c 'import sys, ");
  expect(told).toContain('quantization_config=t.GgufConfig(dequantize=True)');
  expect(told).toContain(String.raw`save_pretrained(to)' 'PROJECT/a user'\''s' tiny.Q4_1.gguf ./tiny.Q4_1 (`);
  expect(told).toContain('compare pre_tokenizer');
});

test.each([
  'train AGENT',
  'train chats.jsonl',
  'schedule create AGENT --name nightly --every 1d',
  'try AGENT',
  'eval AGENT',
])('is refused so by temper %s, whichever name its flag is given', async (line) => {
  const chat = (content: string) =>
    JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content })) });
  await write(join(project, 'chats.jsonl'), `${chat('a')}\n${chat('b')}\n`);
  const args = line.split(' ').map((word) => (word === 'AGENT' ? agent : word));
  const told = await complaint(['train', agent, '--base-model', file]);
  expect(await complaint([...args, '--base-model', file])).toBe(told);
  expect(await complaint([...args, '--model', file])).toBe(told);
  // The same for the folder that holds nothing else, and for a name of temporal.config.ts.
  expect(await complaint([...args, '--model', join(project, "a user's")])).toBe(told);
  await write(join(project, 'temporal.config.ts'), `export default { models: { mine: ${JSON.stringify(file)} } };`);
  expect(await complaint([...args, '--model', 'mine'])).toBe(told);
  expect(await complaint(['doctor', 'model', 'mine'])).toBe(told);
});

test('another file is none either, whatever its path looks like', async () => {
  await write(join(project, 'models', 'model.safetensors'), '{}');
  expect(await complaint(['train', agent, '--base-model', 'models/model.safetensors'])).toContain(
    'a base model must be a folder, got the file PROJECT/models/model.safetensors',
  );
  expect(await complaint(['train', agent, '--base-model', 'models/none.gguf'])).toContain(
    "the base model's folder PROJECT/models/none.gguf does not exist",
  );
});
