/** Mistakes about a judge that a person can make: one line that says what to do, exit code 2, nothing left behind. */
import { beforeEach, expect, test } from 'vitest';
import { writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn } from './run-cli.ts';

let project: string;
beforeEach(async () => {
  project = await temporaryProject();
});

async function complaint(
  ruler: string | null,
  flags: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  const agent = await writeAgent(project, ruler === null ? {} : { reward: `reward: ruler(${ruler}), ` });
  return complaintIn(project, ['train', agent, '--base-model', 'pocket', ...flags], { env });
}

const HOSTED = "{ judge: 'openai/gpt-5-mini' }";

test('a judge without its key', async () => {
  expect(await complaint(HOSTED)).toBe(
    'temper: the judge openai/gpt-5-mini needs a key in OPENAI_API_KEY, which is not set; export it where the command and the workers run',
  );
});

test('a judge that nobody knows', async () => {
  expect(await complaint("{ judge: 'acme/large' }")).toContain(
    'the judge must be provider/model, the provider one of openai, anthropic, gemini,',
  );
});

test('a judge that is a checkpoint which is not there', async () => {
  expect(await complaint("{ judge: 'engine/demo@100' }")).toContain(
    'the judge engine/demo@100 must be a committed checkpoint in file://PROJECT',
  );
});

test('a judge whose cost is bounded and not known', async () => {
  expect(await complaint(HOSTED, ['--max-judge-usd', '5'], { OPENAI_API_KEY: 'x' })).toBe(
    "temper: maxJudgeUsd has no effect while the price of openai/gpt-5-mini is unknown; set usdPerMillionInput and usdPerMillionOutput of ruler in the agent's file",
  );
});

test('a bound of what a judge may cost where there is none', async () => {
  expect(await complaint(null, ['--max-judge-usd', '5'])).toBe(
    'temper: --max-judge-usd 5 has no effect without a judge; give the agent reward: ruler({ … })',
  );
  expect(await complaint(null, ['--max-judge-usd', '-1'])).toBe(
    'temper: --max-judge-usd must be at least 0, got -1; see temper train --help',
  );
});

const GROUP = 'rewardGroup: ({ attempts }) => attempts.map(() => 1), ';

test('a judge for an agent that rewards its groups itself', async () => {
  const agent = await writeAgent(project, { reward: GROUP });
  const train = (...flags: string[]) => complaintIn(project, ['train', agent, '--base-model', 'pocket', ...flags]);
  expect(await train('--judge', 'groq/large')).toMatch(
    /^temper: --judge groq\/large has no effect: the agent \S+ has rewardGroup; add reward: ruler\(\{ … \}\) to it$/,
  );
  expect(await train('--max-judge-usd', '5')).toBe(
    'temper: --max-judge-usd 5 has no effect without a judge; give the agent reward: ruler({ … })',
  );
});

test('another judge by flag: its name, its key, its price, and that there is anything to judge', async () => {
  expect(await complaint(HOSTED, ['--judge', 'acme/large'])).toContain(
    'the judge must be provider/model, the provider one of openai,',
  );
  expect(await complaint(HOSTED, ['--judge', 'groq/large'], { OPENAI_API_KEY: 'x' })).toContain(
    'the judge groq/large needs a key in GROQ_API_KEY, which is not set',
  );
  const priced = "{ judge: 'openai/gpt-5-mini', usdPerMillionInput: 1, usdPerMillionOutput: 2, maxJudgeUsd: 9 }";
  expect(await complaint(priced, ['--judge', 'groq/large'], { GROQ_API_KEY: 'x' })).toContain(
    'maxJudgeUsd has no effect while the price of groq/large is unknown',
  );
  expect(await complaint(null, ['--judge', 'groq/large'], { GROQ_API_KEY: 'x' })).toMatch(
    /^temper: --judge groq\/large has no effect: the agent \S+ returns its own rewards; add reward: ruler/,
  );
});
