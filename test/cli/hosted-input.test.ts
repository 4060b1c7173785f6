/** Mistakes about hosted models, judges and MCP servers: one line, exit code 2, nothing asked and nothing left behind. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { checkPrices } from '../../cli/scenarios/plan-scenarios.ts';
import { freePort } from '../free-port.ts';
import { sdkImports, write, writeAgent } from './agents.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { complaintIn } from './run-cli.ts';

const PROGRAM = fileURLToPath(new URL('../mcp/hostile-server.mjs', import.meta.url));
const KEYS = { OPENAI_API_KEY: 'x', GROQ_API_KEY: 'x' };
const words = (line: string) => line.split(' ').filter(Boolean);

let project: string;
beforeEach(async () => {
  project = temporaryProject();
});

test.each([
  ['', '--model is missing; pass a checkpoint such as RUN@best, a base model, or provider/model'],
  ['--model pocket --model pocket', '--model pocket is given twice; pass each model once'],
  ['--model openai/gpt-5', 'openai/gpt-5 needs a key in OPENAI_API_KEY, which is not set; export it'],
  ['--model pocket --key-env KEY', '--key-env has no effect without --base-url or a model named by URL; pass one'],
  ['--model m --base-url https://example.test/v1 --key-env KEY', 'm needs a key in KEY, which is not set; export it'],
  ['--model m --base-url example.test', '--base-url must be an http(s) URL without user, password, query or fragment'],
  ['--model pocket --max-tokens 5', '--max-tokens has no effect without a hosted model; leave it out'],
  ['--model pocket --price openai/gpt-5=1/2', '--price openai/gpt-5 has no effect: it is none of the models; pass one'],
  ['--model pocket --price pocket=cheap', '--price must be MODEL=IN/OUT, got "pocket=cheap"; write openai/gpt-5=1.25'],
  ['--model pocket --max-cost-usd 1', '--max-cost-usd has no effect without --judge; pass both, or leave it out'],
  ['--model pocket --judge', '--judge has no effect: the agent guess has no hosted judge; add reward: ruler'],
  ['--model demo@7', 'demo@7 is not committed; pass another step, or demo@latest'],
  ['--model demo@best', 'no checkpoint of demo has been evaluated'],
])('temper eval agent.ts %s', async (flags, message) => {
  const agent = await writeAgent(project);
  if (flags.includes('demo')) await writeFixtureRun(project, { steps: 2 });
  expect(await complaintIn(project, ['eval', agent, ...words(flags)])).toContain(`temper: ${message}`);
});

describe('a judge', () => {
  const HOSTED = "reward: ruler({ judge: 'openai/gpt-5-mini' }), ";
  const PRICED = HOSTED.replace(' })', ', usdPerMillionInput: 1, usdPerMillionOutput: 2 })');
  const OWN = 'rewardGroup: ({ attempts }) => attempts.map(() => 1), ';
  const NONE = '--max-cost-usd 5 has no effect while nothing of the run has a price; set --gpu-usd-per-hour';

  test.each<[reward: string, flags: string, env: object, said: string]>([
    [HOSTED, '', {}, 'the judge openai/gpt-5-mini needs a key in OPENAI_API_KEY, which is not set; export it where'],
    [HOSTED, '--judge acme/large', {}, 'the judge must be provider/model, the provider one of openai, anthropic, '],
    [HOSTED, '--judge engine/demo@100', {}, 'engine/demo@100 must be a committed checkpoint in file://PROJECT'],
    [HOSTED, '--judge groq/large', { OPENAI_API_KEY: 'x' }, 'groq/large needs a key in GROQ_API_KEY, which is not set'],
    [HOSTED, '--max-cost-usd 5', KEYS, 'has a price, not even its judge openai/gpt-5-mini;'],
    [PRICED, '--judge groq/large --max-cost-usd 5', KEYS, 'has a price, not even its judge groq/large'],
    ['', '--max-cost-usd 5', {}, NONE],
    ['', '--judge groq/large', KEYS, ' returns its own rewards; add reward: ruler'],
    [OWN, '--judge groq/large', {}, ' has rewardGroup; add reward: ruler({ … }) to it'],
    [OWN, '--max-cost-usd 5', {}, NONE],
  ])('of an agent with %j, and %j', async (reward, flags, env, said) => {
    const agent = await writeAgent(project, { reward });
    const line = ['train', agent, '--base-model', 'pocket', ...words(flags)];
    expect(await complaintIn(project, line, { env: { ...env } })).toContain(said);
  });
});

describe('temper init --task', () => {
  const init = (...given: string[]) => complaintIn(project, ['init', ...given], { env: { OPENAI_API_KEY: 'key' } });
  const TASK = '--task Add --base-model pocket';

  test.each([
    [
      '--task  --base-model pocket',
      '--task must be a sentence that says what the agent has to do, got an empty text; pass',
    ],
    ['--task Add', '--base-model is missing; pass --base-model pocket '],
    [`${TASK} --writer gpt-5`, '--writer must be a hosted model, got "gpt-5"; pass provider/model, such as'],
    [`${TASK} --judge engine/pocket`, '--judge must be a hosted model, got "engine/pocket"; '],
    [`${TASK} --mcp no-such-server`, 'the MCP server no-such-server cannot be started (ENOENT); '],
    [`${TASK} --tools add`, '--tools has no effect without --mcp; pass both, or leave it out'],
    [`${TASK} --template tools`, '--template and --task exclude each other; leave one of them out'],
    [`${TASK} --count 6 --held-out 6`, '--held-out must be less than --count 6'],
    [`${TASK} --max-cost-usd 1`, '--max-cost-usd has no effect while the price of openai/gpt-5-mini is unknown'],
    ['--count 6', '--count has no effect without --task; pass both, or leave it out'],
  ])('%s', async (line, said) => {
    expect(await init(...line.split(' '))).toContain(`temper: ${said}`);
  });

  test('another base model than the configuration has', async () => {
    await writeFile(join(project, 'temporal.config.ts'), "export default { train: { 'base-model': 'pocket-tools' } };");
    expect(await init(...TASK.split(' '))).toContain(
      'temper: --base-model must be that of PROJECT/temporal.config.ts, pocket-tools, got pocket; edit the file',
    );
  });
});

describe('temper scenarios', () => {
  const scenarios = (...flags: string[]) =>
    complaintIn(project, ['scenarios', ...flags], { env: { OPENAI_API_KEY: 'key' } });
  const TASK = '--from-task Add --model openai/gpt-5-mini';

  test.each([
    ['--model openai/gpt-5', 'scenarios must come from one source: pass --from-mcp SERVER or --from-task TEXT'],
    [`${TASK} --from-mcp npx`, '--from-mcp and --from-task exclude each other; leave one of them out'],
    ['--from-task  --model openai/x', '--from-task must be a task in one sentence, got an empty text; pass one'],
    ['--from-task Add', '--model is missing; pass a hosted model such as openai/gpt-5-mini'],
    [`${TASK} --count 0`, '--count must be a whole number from 2 to 10000, got "0"; pass --count N'],
    [`${TASK} --count 6 --held-out 6`, '--held-out must be less than --count 6, or nothing is left to train on, got 6'],
    [`${TASK} --tools add`, '--tools has no effect without --from-mcp; pass both, or leave it out'],
    [`${TASK} --mcp-env TOKEN`, '--mcp-env has no effect without --from-mcp; pass both, or leave it out'],
    [
      `${TASK} --attempts 0 --try-with openai/x`,
      '--try-with and --attempts 0 exclude each other; leave one of them out',
    ],
    [`${TASK} --max-cost-usd 1`, '--max-cost-usd has no effect while the price of openai/gpt-5-mini is unknown; pass'],
    ['--from-task Add --model pocket', '--model must be a hosted model (it writes the scenarios), got pocket; pass'],
  ])('%s', async (flags, rule) => {
    expect(await scenarios(...flags.split(' '))).toContain(`temper: ${rule}`);
  });

  test.each([
    [`node ${PROGRAM} plain`, ' has no tool "fly", which only of mcp names; it has '],
    ["npx 'open", "--from-mcp must be a command line with closed quotes, got npx 'open; close them"],
    [' ', "--from-mcp must be a command or a URL, got none; pass 'npx -y SERVER' or http://HOST/mcp"],
  ])('of the MCP server %j', async (server, said) => {
    const flags = ['--model', 'openai/gpt-5-mini', '--from-mcp', server, '--tools', 'fly'];
    expect(await scenarios(...flags)).toContain(said);
  });

  test('a budget needs no price for models of this machine, and for those whose server says what a call costs', () => {
    const player = (hosted: object | null) => ({ name: 'm', hosted, price: null }) as never;
    expect(() => checkPrices([player(null), player({ isFree: true }), player({ reportsCost: true })])).not.toThrow();
    expect(() => checkPrices([player({})])).toThrow('while the price of m is unknown');
  });
});

describe('MCP servers of an agent', () => {
  const hostile = (mode: string) => `mcp({ command: 'node', args: ['${PROGRAM}', '${mode}'] })`;

  async function complaint(servers: string, command = 'train --base-model pocket'): Promise<string> {
    await write(
      join(project, 'agent.ts'),
      `${sdkImports('defineAgent', 'mcp')}
export default defineAgent({ name: 'a', scenarios: [{ id: 'a' }, { id: 'b' }], mcp: ${servers}, rollout: () => 0 });
`,
    );
    const [name = '', ...flags] = words(command);
    const line = await complaintIn(project, [name, 'agent.ts', ...flags]);
    return line.replaceAll(PROGRAM, 'SERVER').replaceAll(process.execPath, 'node');
  }

  test('a program that is not there', async () => {
    const said =
      'temper: the MCP server no-such-server cannot be started (ENOENT); install no-such-server, or correct mcp({ command })';
    expect(await complaint("[mcp({ command: 'no-such-server' })]")).toBe(said);
    expect(await complaint("[mcp({ command: 'no-such-server' })]", 'try')).toBe(said);
  });

  test('nobody listens there', async () => {
    const url = `http://127.0.0.1:${await freePort()}/mcp`;
    expect(await complaint(`[mcp({ url: '${url}?key=secret' })]`)).toBe(
      `temper: the MCP server ${url} did not answer: the server cannot be reached (ECONNREFUSED); run it by hand, and correct mcp({ … })`,
    );
  });

  test.each([
    [
      "[mcp({ url: 'localhost:3001/mcp' })]",
      `url of mcp must be an http(s) URL without a password, got "localhost:3001/mcp"; pass 'http://127.0.0.1:3001/mcp'`,
    ],
    [
      `[${hostile('twice')}]`,
      'the MCP server node SERVER twice has two tools of the name die; correct the server, or leave both out by only: […] of mcp',
    ],
    [
      `[${hostile('plain')}, ${hostile('noise')}]`,
      "two MCP servers of the agent a have a tool die; give one a prefix: mcp({ prefix: 'files_', … })",
    ],
    [
      "[{ command: 'npx' }]",
      'mcp of the agent a must be a list of servers, got [{"command":"npx"}]; pass [mcp({ … })]',
    ],
  ])('%s', async (servers, said) => {
    expect(await complaint(servers)).toContain(said);
  });
});
