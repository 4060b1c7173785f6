/** `temper try` with a model that is served elsewhere; on the local stack: test/installation/own-project.test.ts. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { wrap } from '../../cli/try/lines.ts';
import { tryCommand } from '../../cli/try/command.ts';
import { planTry } from '../../cli/try/plan-try.ts';
import { placeOfThrow } from '../../play/place-of-throw.ts';
import { defineAgent } from '../../sdk/index.ts';
import { replayAttempt } from '../../sdk/testing/index.ts';
import { startFakeEngine } from '../fake-engine.ts';
import { sdkImports, write } from './agents.ts';
import { contextOf, runCli } from './run-cli.ts';
import { makeProject, runTry, writeAsking } from './tried-project.ts';

let project: string;
beforeEach(async () => {
  project = await makeProject();
});

/** Without times; and vitest does not let Node read the source maps that lead to an agent's lines. */
const settled = (text: string) =>
  text.replaceAll(/\d+\.\d s$/gm, '… s').replaceAll(/agent\.ts:\d+:\d+/g, 'agent.ts:LINE:COLUMN');

test('each conversation with its outcome, then scenarios, warnings and notes', async () => {
  await writeAsking(
    project,
    "if (said === 'B') throw new Error('cannot bear it');\n    return { reward: 1, metrics: { right: true } };",
  );
  const { exitCode, stdout } = await runTry(project, ['--scenarios', '2']);
  expect(exitCode).toBe(1);
  expect(settled(stdout)).toMatchInlineSnapshot(`
    "── a · attempt 1 of 2
    user      a
    assistant A
    user      Again, please
    assistant A
    => reward 1.000 · right true
       2 calls · 45 tokens read, 4 written · … s

    ── a · attempt 2 of 2
    user      a
    assistant A
    user      Again, please
    assistant A
    => reward 1.000 · right true
       2 calls · 45 tokens read, 4 written · … s

    ── b · attempt 1 of 2
    user      b
    assistant B
    user      Again, please
    assistant B
    => failed: Error: cannot bear it (agent.ts:LINE:COLUMN)
       2 calls · 45 tokens read, 4 written · … s

    ── b · attempt 2 of 2
    user      b
    assistant B
    user      Again, please
    assistant B
    => failed: Error: cannot bear it (agent.ts:LINE:COLUMN)
       2 calls · 45 tokens read, 4 written · … s

    echo, played by openai/m
    scenario  attempts  failed  mean reward  lowest to highest
    a         2         0       1.000        1.000 to 1.000
    b         2         2       –            –
    warning: 2 of 4 attempts failed, the first with: Error: cannot bear it (agent.ts:LINE:COLUMN)
    warning: the reward never varies: all attempts at a scenario earned the same (1.000), which gives no learning signal; choose scenarios that the model solves at times, begin with supervised steps (--warm-start) if it never gives a right answer, give credit for steps towards the goal, or play more --attempts
    note: played 2 of 4 scenarios, a sample that is the same each time
    note: a hosted model returns no token ids, and is asked whatever the agent asks: rewritten histories, and parameters that training refuses, were not checked; play on pocket or a checkpoint to check them"
  `);
  expect(await readdir(project)).toEqual(['agent.ts', 'package.json']);
});

test('rewards by name are columns, and rewardGroup gives its part as in a run', async () => {
  const evals = `
  rewards: { right: 1, alone: 0.5 },
  rewardGroup: ({ attempts }) => attempts.map(({ attempt }) => ({ alone: attempt })),`;
  await writeAsking(project, "return { rewards: { right: said === 'A' ? 1 : 0 }, metrics: { said: true } };", {
    evals,
  });
  const { exitCode, stdout } = await runTry(project, ['--scenarios', '2']);
  expect(exitCode).toBe(0);
  expect(stdout.match(/^=> .*$/gm)).toEqual([
    '=> reward 1.000 · said true · reward/right 1.000 · reward/alone 0.000',
    '=> reward 1.500 · said true · reward/right 1.000 · reward/alone 1.000',
    '=> reward 0.000 · said true · reward/right 0.000 · reward/alone 0.000',
    '=> reward 0.500 · said true · reward/right 0.000 · reward/alone 1.000',
  ]);
  expect(stdout).toContain(
    [
      'scenario  attempts  failed  mean reward  lowest to highest  reward/right  reward/alone',
      'a         2         0       1.250        1.000 to 1.500     1.000         0.500',
      'b         2         0       0.250        0.000 to 0.500     0.000         0.500',
    ].join('\n'),
  );
  expect(stdout).not.toContain('warning');
});

test('--json has the calls, without token ids', async () => {
  await writeAsking(project, 'return 0.5;');
  const { exitCode, stdout } = await runTry(project, ['--scenario', 'c', '--attempts', '3', '--json']);
  expect(exitCode).toBe(0);
  const shown = JSON.parse(stdout) as { scenarios: { attempts: object[] }[] };
  expect(shown).toMatchObject({ agent: 'echo', model: 'openai/m', scenarios: [{ scenario: 'c', meanReward: 0.5 }] });
  expect(shown.scenarios[0]!.attempts).toHaveLength(3);
  expect(shown.scenarios[0]!.attempts[0]).toMatchObject({ reward: 0.5, failure: null, truncated: false });
  expect(stdout).toContain('"finishReason": "stop"');
  expect(stdout).not.toContain('tokenIds');
});

test('what a person says of temperature and limits goes to the hosted model', async () => {
  await writeAsking(project, 'return 1;');
  const { asked } = await runTry(project, '--scenarios 1 --attempts 1 --temperature 0.3 --max-tokens 9'.split(' '));
  expect(asked[0]).toMatchObject({ temperature: 0.3, max_completion_tokens: 9 });
});

test('--eval plays evalScenarios', async () => {
  await writeAsking(project, 'return 1;', { evals: " evalScenarios: [{ id: 'exam' }]," });
  const { stdout, asked } = await runTry(project, ['--eval']);
  expect(stdout).toContain('── exam · attempt 2 of 2');
  expect(asked[0]?.messages[0]?.content).toBe('exam');
});

test('--save writes attempts that replayAttempt plays again', async () => {
  await writeAsking(project, 'return random();');
  const { stdout } = await runTry(project, ['--scenario', 'd', '--attempts', '2', '--save', 'kept', '--json']);
  expect(await readdir(join(project, 'kept'))).toEqual(['3-d-0.json', '3-d-1.json']);
  const { scenarios } = JSON.parse(stdout) as { scenarios: { attempts: { reward: number }[] }[] };
  const agent = defineAgent({
    name: 'echo',
    scenarios: [],
    async rollout({ openai, model, random }) {
      await openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'd' }] });
      return random();
    },
  });
  const replayed = await replayAttempt(agent, join(project, 'kept', '3-d-1.json'));
  expect(replayed.reward).toBe(scenarios[0]!.attempts[1]!.reward);
  expect(replayed.calls[0]?.message.content).toBe('D');
  expect(replayed.notAsked).toHaveLength(1);
});

test('a hosted model beside the policy is shown with its cost, saved, and answered from the record', async () => {
  const asking = `
    const other = hosted('openrouter/judge', { usdPerMillionInput: 1, usdPerMillionOutput: 2 });
    const messages = [{ role: 'user', content: 'is it good?' }];
    const { choices } = await other.openai.chat.completions.create({ model: other.model, messages });
    await openai.chat.completions.create({ model, messages: [{ role: 'user', content: choices[0].message.content }] });`;
  await writeAsking(project, 'return 1;', { asking });
  const provider = await startFakeEngine({ answer: () => 'fairly good' });
  onTestFinished(() => provider.close());
  vi.stubEnv('OPENROUTER_BASE_URL', `${provider.url}/v1`);
  vi.stubEnv('OPENROUTER_API_KEY', provider.key);
  onTestFinished(() => void vi.unstubAllEnvs());
  const { stdout } = await runTry(project, ['--scenario', 'd', '--attempts', '1', '--save', 'kept', '--replay']);
  expect(stdout).toContain('hosted    openrouter/judge, 17 + 2 tokens, $0.000021: fairly good');
  expect(stdout).toContain('=> reward 1.000 · hostedCalls 1.000 · hostedUsd 2.1e-5');
  expect(stdout).not.toContain('when it was replayed');
  expect(provider.executed).toHaveLength(1);
  const file = join(project, 'kept', '3-d-0.json');
  expect(await readFile(file, 'utf8')).not.toContain(provider.key);
});

test('--replay finds an agent whose requests hang on chance', async () => {
  await writeAsking(project, 'return random();');
  expect((await runTry(project, ['--replay', '--json'])).stdout).not.toContain('when it was replayed');
  await writeAsking(project, 'return 1;', {
    asking:
      "await openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'it is ' + Math.random() }] });",
  });
  const { stdout } = await runTry(project, ['--replay', '--scenarios', '1']);
  expect(stdout).toContain('warning: 2 attempts did something else when it was replayed');
  expect(stdout).toContain('recorded: "it is 0.');
});

test('control characters control nothing, and long messages are bounded', async () => {
  await writeAsking(project, "log('\\u001b[2J', 'x'.repeat(300)); return 1;");
  const answer = () => Array.from({ length: 50 }, (_, line) => `line ${line} \u001b[31m`).join('\n');
  const { stdout } = await runTry(project, ['--scenarios', '1', '--attempts', '1'], { answer });
  expect(stdout).not.toContain('\u001b');
  expect(stdout).toContain('line 3 \\u001b[31m');
  expect(stdout).toContain('… 37 more lines');
  expect(
    Math.max(
      ...stdout
        .split('\n')
        .filter((line) => !line.startsWith('note'))
        .map((line) => line.length),
    ),
  ).toBeLessThanOrEqual(100);
});

test('lines are wrapped at blanks where there are some', () => {
  expect(wrap('to be or not to be', 9)).toEqual(['to be or', 'not to be']);
  expect(wrap('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij']);
  expect(wrap('', 4)).toEqual(['']);
});

test('a thrown error is placed in the agent’s own files, below its folder, and nowhere else', () => {
  const thrown = (...frames: string[]) => Object.assign(new Error('x'), { stack: ['Error: x', ...frames].join('\n') });
  const inLibrary = '    at post (file:///project/node_modules/openai/client.mjs:9:9)';
  const helper = '    at async parse (file:///project/lib/parse.ts?namespace=17:3:14)';
  expect(placeOfThrow(thrown(inLibrary, helper), '/project')).toBe('lib/parse.ts:3:14');
  expect(placeOfThrow(thrown('    at /project/my agent.ts:5:6'), '/project')).toBe('my agent.ts:5:6');
  expect(placeOfThrow(thrown('    at parse (/elsewhere/a.ts:1:2)'), '/project')).toBeNull();
  expect(placeOfThrow('no error', '/project')).toBeNull();
});

test('Ctrl-C in the middle of a call ends it', async () => {
  await writeAsking(project, 'return 1;');
  const stop = new AbortController();
  const answer = (): string => {
    stop.abort('SIGINT');
    return 'late';
  };
  const { exitCode, stderr } = await runTry(project, [], { answer, delayMs: 20 }, stop.signal);
  expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: '' });
});

test('by default the working folder’s agent is played by the model that the project trains', async () => {
  await writeAsking(project, 'return 1;');
  const planned = () => planTry(contextOf(tryCommand, project, []));
  expect((await planned()).player.name).toBe('pocket');
  await write(join(project, 'temporal.config.ts'), "export default { train: { 'base-model': 'pocket-tools' } };\n");
  const { player, agentFile, scenarios, attempts } = await planned();
  expect([player.name, agentFile.path]).toEqual(['pocket-tools', join(project, 'agent.ts')]);
  expect([scenarios.map(({ scenario }) => scenario.id), attempts]).toEqual([['a', 'b', 'c'], 2]);
});

describe('bad input is one line', () => {
  async function complaint(...args: string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await runCli(project, ['try', 'agent.ts', ...args], {});
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(await readdir(project)).toEqual(['agent.ts', 'package.json']);
    return stderr.replaceAll(project, 'PROJECT');
  }

  beforeEach(() => writeAsking(project, 'return 1;'));

  test.each([
    [['--scenario', 'bb'], 'temper: no scenario has the id "bb", of the 4 that were read; did you mean b?'],
    [
      ['--scenario', 'b', '--scenario', 'b'],
      'temper: --scenario b is given twice; pass it once, and --attempts for more attempts',
    ],
    [
      ['--scenario', 'b', '--scenarios', '2'],
      'temper: --scenarios and --scenario exclude each other; leave one of them out',
    ],
    [
      ['--eval'],
      'temper: --eval has no effect: the agent echo has no evalScenarios (PROJECT/agent.ts); add some, or leave it out',
    ],
    [
      ['--save', 'package.json'],
      'temper: --save must name a folder, got the file PROJECT/package.json; pass another name',
    ],
    [['--attempts', '0'], 'temper: --attempts must be a whole number of at least 1, got "0"; pass --attempts N'],
    [['--model', 'openai/m'], 'temper: openai/m needs a key in OPENAI_API_KEY, which is not set; export it'],
    [
      ['--model', 'none@3'],
      'temper: no run none in the store file://PROJECT/.temper/store (it has none yet); start it with temper train',
    ],
  ])('%j', async (args, message) => {
    expect(await complaint(...args)).toBe(message);
  });

  test('a scenario file that is no JSON names its line', async () => {
    await writeAsking(project, 'return 1;');
    const file = join(project, 'agent.ts');
    await writeFile(join(project, 'package.json'), '{"type":"module"}');
    const text = `${sdkImports('defineAgent')}\nexport default defineAgent({ name: 'a', scenarios: './package.json', rollout: () => 1 });\n`;
    await writeFile(file, text);
    expect(await complaint()).toContain('line 1 of PROJECT/package.json must be an object with a non-empty string id');
  });
});
