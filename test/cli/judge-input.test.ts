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

const PRICED = "{ judge: 'openai/gpt-5-mini', usdPerMillionInput: 1, usdPerMillionOutput: 2, maxJudgeUsd: 9 }";
const KEYS = { OPENAI_API_KEY: 'x', GROQ_API_KEY: 'x' };

test.each<[ruler: string | null, flags: string, env: object, said: string]>([
  [HOSTED, '', {}, 'the judge openai/gpt-5-mini needs a key in OPENAI_API_KEY, which is not set; export it where'],
  [
    "{ judge: 'acme/large' }",
    '',
    {},
    'the judge must be provider/model, the provider one of openai, anthropic, gemini,',
  ],
  [
    "{ judge: 'engine/demo@100' }",
    '',
    {},
    'the judge engine/demo@100 must be a committed checkpoint in file://PROJECT',
  ],
  [HOSTED, '--max-judge-usd 5', KEYS, 'maxJudgeUsd has no effect while the price of openai/gpt-5-mini is unknown; set'],
  [
    null,
    '--max-judge-usd 5',
    {},
    '--max-judge-usd 5 has no effect without a judge; give the agent reward: ruler({ … })',
  ],
  [null, '--max-judge-usd -1', {}, '--max-judge-usd must be at least 0, got -1; see temper train --help'],
  [HOSTED, '--judge acme/large', {}, 'the judge must be provider/model, the provider one of openai,'],
  [HOSTED, '--judge groq/large', { OPENAI_API_KEY: 'x' }, 'groq/large needs a key in GROQ_API_KEY, which is not set'],
  [PRICED, '--judge groq/large', KEYS, 'maxJudgeUsd has no effect while the price of groq/large is unknown'],
  [null, '--judge groq/large', KEYS, ' returns its own rewards; add reward: ruler'],
])('a judge %j with %j', async (ruler, flags, env, said) => {
  expect(await complaint(ruler, flags.split(' ').filter(Boolean), { ...env })).toContain(said);
});

test('a judge for an agent that rewards its groups itself', async () => {
  const agent = await writeAgent(project, { reward: 'rewardGroup: ({ attempts }) => attempts.map(() => 1), ' });
  const train = (...flags: string[]) => complaintIn(project, ['train', agent, '--base-model', 'pocket', ...flags]);
  expect(await train('--judge', 'groq/large')).toMatch(
    /^temper: --judge groq\/large has no effect: the agent \S+ has rewardGroup; add reward: ruler\(\{ … \}\) to it$/,
  );
  expect(await train('--max-judge-usd', '5')).toContain('--max-judge-usd 5 has no effect without a judge');
});
