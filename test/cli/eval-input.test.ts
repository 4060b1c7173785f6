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

const complaint = (file: string, flags: readonly string[]) => complaintIn(project, ['eval', file, ...flags]);

const evaluate = (...flags: string[]) => complaint(agent, flags);

test('without a model, with one named twice, with a provider’s key that is not set', async () => {
  expect(await evaluate()).toMatchInlineSnapshot(
    `"temper: --model is missing; pass a checkpoint such as RUN@best, a base model, or provider/model"`,
  );
  expect(await evaluate('--model', 'pocket', '--model', 'pocket')).toMatchInlineSnapshot(
    `"temper: --model pocket is given twice; pass each model once"`,
  );
  expect(await evaluate('--model', 'openai/gpt-5')).toMatchInlineSnapshot(
    `"temper: openai/gpt-5 needs a key in OPENAI_API_KEY, which is not set; export it"`,
  );
});

test('a key for nobody, a key that is not set, a URL that is none', async () => {
  expect(await evaluate('--model', 'pocket', '--key-env', 'KEY')).toMatchInlineSnapshot(
    `"temper: --key-env has no effect without --base-url or a model named by URL; pass one of them"`,
  );
  const elsewhere = ['--model', 'm', '--base-url', 'https://example.test/v1', '--key-env', 'KEY'];
  expect(await evaluate(...elsewhere)).toMatchInlineSnapshot(
    `"temper: m needs a key in KEY, which is not set; export it"`,
  );
  expect(await evaluate('--model', 'm', '--base-url', 'example.test')).toMatchInlineSnapshot(
    `"temper: --base-url must be an http(s) URL without user, password, query or fragment (it is shown to people), got "example.test"; pass one like https://api.openai.com/v1, and the key by an environment variable"`,
  );
});

test('flags without effect, and a price that is none', async () => {
  expect(await evaluate('--model', 'pocket', '--max-tokens', '5')).toMatchInlineSnapshot(
    `"temper: --max-tokens has no effect without a hosted model; leave it out"`,
  );
  expect(await evaluate('--model', 'pocket', '--price', 'openai/gpt-5=1/2')).toMatchInlineSnapshot(
    `"temper: --price openai/gpt-5 has no effect: it is none of the models; name it with --model"`,
  );
  expect(await evaluate('--model', 'pocket', '--price', 'pocket=cheap')).toMatchInlineSnapshot(
    `"temper: --price must be MODEL=IN/OUT, got "pocket=cheap"; write openai/gpt-5=1.25/10 (US dollars per million input and output tokens)"`,
  );
});

test('two scenarios of one name', async () => {
  const twice = await writeAgent(join(project, 'twice'), { scenarios: "[{ id: 'a' }, { id: 'a' }]" });
  expect(await complaint(twice, ['--model', 'pocket'])).toMatchInlineSnapshot(
    `"temper: scenario ids must be unique, among evalScenarios too, got "a" at scenarios[0] and scenarios[1]; rename one"`,
  );
});

test('a checkpoint that is not committed', async () => {
  await writeFixtureRun(project, { steps: 2 });
  expect(await evaluate('--model', 'demo@7')).toMatchInlineSnapshot(
    `"temper: demo@7 is not committed; pass another step, or demo@latest"`,
  );
  expect(await evaluate('--model', 'demo@best')).toContain('no checkpoint of demo has been evaluated');
});
