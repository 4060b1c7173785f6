/** Mistakes in a command of `temper auto`: one line, exit code 2, and nothing is written. */
import { mkdir, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { temporaryProject } from '../fixture-store.ts';
import { complaintIn } from '../run-cli.ts';

const env = { OPENAI_API_KEY: 'key' };

test.each([
  [
    [],
    /^temper: TASK must be a sentence that says what the agent has to do, or --out a folder with auto\.json; write temper auto /,
  ],
  [
    ['x', '--model', 'gpt-5'],
    /^temper: --model must be a hosted model, got "gpt-5"; pass provider\/model, such as openai\/gpt-5-mini, or URL#MODEL$/,
  ],
  [['x', '--judge', 'engine/pocket'], /^temper: --judge must be a hosted model, got "engine\/pocket"; /],
  [['x', '--model', 'groq/llama'], /^temper: groq\/llama needs a key in GROQ_API_KEY, which is not set; export it$/],
  [
    ['x', '--count', '4', '--held-out', '4'],
    /^temper: --held-out must be less than --count 4, or nothing is left to train on, got 4; lower it$/,
  ],
  [['x', '--tools', 'a'], /^temper: --tools has no effect without --mcp; leave it out, or pass the server$/],
  [['x', '--mcp', 'no-such-server'], /^temper: the MCP server no-such-server cannot be started \(ENOENT\); /],
  [
    ['x', '--max-cost-usd', '1'],
    /^temper: --max-cost-usd has no effect while the price of openai\/gpt-5-mini is unknown; pass --price openai\/gpt-5-mini=IN\/OUT /,
  ],
  [
    ['x', '--until', 'agent', '--redo', 'run'],
    /^temper: --redo run must not come after --until agent; leave one of them out$/,
  ],
])('temper auto %j', async (words, expected) => {
  const until = words.includes('--until') ? [] : ['--until', 'rubric'];
  expect(await complaintIn(await temporaryProject(), ['auto', ...words, ...until], { env })).toMatch(expected);
});

test.each([
  [[], /^temper: --base-model is missing; pass --base-model pocket /],
  [['--base-model', 'pocket', '--group-size', '1'], /^temper: --group-size must be at least 2 /],
])('what temper train would refuse of %j is refused before anything is paid for', async (words, expected) => {
  expect(await complaintIn(await temporaryProject(), ['auto', 'x', ...words], { env })).toMatch(expected);
});

test('a folder whose auto.json is not as it was written', async () => {
  const project = await temporaryProject();
  await mkdir(`${project}/x`);
  await writeFile(`${project}/x/auto.json`, '{"id":7}');
  expect(await complaintIn(project, ['auto', 'x', '--until', 'agent'], { env })).toMatch(
    /^temper: PROJECT\/x\/auto\.json must be as temper auto wrote it, but id is not \(.+\); correct it, or choose another folder with --out$/,
  );
});
