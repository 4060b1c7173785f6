/** Mistakes in a command of `temper auto`: one line, exit code 2, and nothing is written. */
import { mkdir, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { temporaryProject } from '../fixture-store.ts';
import { complaintIn } from '../run-cli.ts';

const env = { OPENAI_API_KEY: 'key' };

test.each([
  ['--until rubric', 'TASK must be a sentence that says what the agent has to do, or --out a folder with auto.json;'],
  ['x --until rubric --model gpt-5', '--model must be a hosted model, got "gpt-5"; pass provider/model, such as'],
  ['x --until rubric --judge engine/pocket', '--judge must be a hosted model, got "engine/pocket"; '],
  ['x --until rubric --model groq/llama', 'groq/llama needs a key in GROQ_API_KEY, which is not set; export it'],
  ['x --until rubric --count 4 --held-out 4', '--held-out must be less than --count 4, or nothing is left to train on'],
  ['x --until rubric --tools a', '--tools has no effect without --mcp; leave it out, or pass the server'],
  ['x --until rubric --mcp no-such-server', 'the MCP server no-such-server cannot be started (ENOENT); '],
  ['x --until rubric --max-cost-usd 1', '--max-cost-usd has no effect while the price of openai/gpt-5-mini is unknown'],
  ['x --until agent --redo run', '--redo run must not come after --until agent; leave one of them out'],
  // What temper train would refuse is refused before anything is paid for.
  ['x', '--base-model is missing; pass --base-model pocket '],
  ['x --base-model pocket --group-size 1', '--group-size must be at least 2 '],
])('temper auto %s', async (words, said) => {
  expect(await complaintIn(await temporaryProject(), ['auto', ...words.split(' ')], { env })).toContain(
    `temper: ${said}`,
  );
});

test('a folder whose auto.json is not as it was written', async () => {
  const project = await temporaryProject();
  await mkdir(`${project}/x`);
  await writeFile(`${project}/x/auto.json`, '{"id":7}');
  expect(await complaintIn(project, ['auto', 'x', '--until', 'agent'], { env })).toMatch(
    /^temper: PROJECT\/x\/auto\.json must be as temper auto wrote it, but id is not \(.+\); correct it, or choose another folder with --out$/,
  );
});
