/** Mistakes that a person can make with `temper eval`: one line, exit code 2, and nothing left behind. */
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { writeAgent } from './agents.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { complaintIn } from './run-cli.ts';

let project: string;
let agent: string;

beforeEach(async () => {
  project = await temporaryProject();
  agent = await writeAgent(project);
});

const KEY = '--model m --base-url https://example.test/v1 --key-env KEY';

test.each([
  ['', '--model is missing; pass a checkpoint such as RUN@best, a base model, or provider/model'],
  ['--model pocket --model pocket', '--model pocket is given twice; pass each model once'],
  ['--model openai/gpt-5', 'openai/gpt-5 needs a key in OPENAI_API_KEY, which is not set; export it'],
  ['--model pocket --key-env KEY', '--key-env has no effect without --base-url or a model named by URL; pass one'],
  [KEY, 'm needs a key in KEY, which is not set; export it'],
  ['--model m --base-url example.test', '--base-url must be an http(s) URL without user, password, query or fragment'],
  ['--model pocket --max-tokens 5', '--max-tokens has no effect without a hosted model; leave it out'],
  ['--model pocket --price openai/gpt-5=1/2', '--price openai/gpt-5 has no effect: it is none of the models; name it'],
  ['--model pocket --price pocket=cheap', '--price must be MODEL=IN/OUT, got "pocket=cheap"; write openai/gpt-5=1.25'],
  ['--model demo@7', 'demo@7 is not committed; pass another step, or demo@latest'],
  ['--model demo@best', 'no checkpoint of demo has been evaluated'],
])('temper eval agent.ts %s', async (flags, message) => {
  if (flags.includes('demo')) await writeFixtureRun(project, { steps: 2 });
  const said = await complaintIn(project, ['eval', agent, ...flags.split(' ').filter(Boolean)]);
  expect(said).toContain(`temper: ${message}`);
});

test('two scenarios of one name', async () => {
  const twice = await writeAgent(join(project, 'twice'), { scenarios: "[{ id: 'a' }, { id: 'a' }]" });
  expect(await complaintIn(project, ['eval', twice, '--model', 'pocket'])).toContain(
    'scenario ids must be unique, among evalScenarios too, got "a" at scenarios[0] and scenarios[1]; rename one',
  );
});
