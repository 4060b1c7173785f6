/** Mistakes that a person can make with `temper scenarios`: one line, exit code 2, nothing asked and nothing left behind. */
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, test } from 'vitest';
import { freePort } from '../../free-port.ts';
import { checkPrices } from '../../../cli/scenarios/plan-scenarios.ts';
import { temporaryProject } from '../fixture-store.ts';
import { complaintIn } from '../run-cli.ts';

const HOSTILE = fileURLToPath(new URL('../../mcp/hostile-server.mjs', import.meta.url));

let project: string;
beforeEach(async () => {
  project = await temporaryProject();
});

const scenarios = (...flags: string[]) =>
  complaintIn(project, ['scenarios', ...flags], { env: { OPENAI_API_KEY: 'key' } });
const MCP = ['--model', 'openai/gpt-5-mini', '--from-mcp'];
const TASK = '--from-task Add --model openai/gpt-5-mini';

test.each([
  ['--model openai/gpt-5', 'scenarios must come from one source: pass --from-mcp SERVER or --from-task TEXT'],
  [`${TASK} --from-mcp npx`, 'scenarios must come from one source: pass --from-mcp SERVER or --from-task TEXT'],
  ['--from-task  --model openai/x', '--from-task must be a task in one sentence, got an empty text; pass one'],
  ['--from-task Add', '--model is missing; pass a hosted model such as openai/gpt-5-mini'],
  [`${TASK} --count 0`, '--count must be a whole number from 2 to 10000, got "0"; pass --count N'],
  [`${TASK} --count 6 --held-out 6`, '--held-out must be less than --count 6, or nothing is left to train on, got 6'],
  [`${TASK} --tools add`, '--tools has no effect without --from-mcp; leave it out'],
  [`${TASK} --mcp-env TOKEN`, '--mcp-env has no effect without --from-mcp; leave it out'],
  [`${TASK} --attempts 0 --try-with openai/x`, '--try-with has no effect with --attempts 0; leave it out'],
  [`${TASK} --max-cost-usd 1`, '--max-cost-usd has no effect while the price of openai/gpt-5-mini is unknown; pass'],
  ['--from-task Add --model pocket', '--model must be a hosted model (it writes the scenarios), got pocket; pass'],
  ['--from-task Add --model groq/llama', 'groq/llama needs a key in GROQ_API_KEY, which is not set; export it'],
])('temper scenarios %s', async (flags, rule) => {
  expect(await scenarios(...flags.split(' '))).toContain(`temper: ${rule}`);
});

test('an MCP server that is not there, has no tools, does not have the tool, or is no command line', async () => {
  expect(await scenarios(...MCP, 'no-such-server --flag')).toBe(
    'temper: the MCP server no-such-server --flag cannot be started (ENOENT); install no-such-server, or correct mcp({ command })',
  );
  const url = `http://127.0.0.1:${await freePort()}/mcp`;
  expect(await scenarios(...MCP, url)).toMatch(/^temper: the MCP server .* did not answer: /);
  expect(await scenarios(...MCP, `node ${HOSTILE} plain`, '--tools', 'fly')).toMatch(
    /has no tool "fly", which only of mcp names; it has /,
  );
  expect(await scenarios(...MCP, "npx 'open")).toBe(
    "temper: --from-mcp must be a command line with closed quotes, got npx 'open; close them",
  );
  expect(await scenarios(...MCP, ' ')).toBe(
    "temper: --from-mcp must be a command or a URL, got none; pass 'npx -y SERVER' or http://HOST/mcp",
  );
});

test('a budget needs no price for models of this machine, and for those whose server says what a call costs', () => {
  const player = (hosted: object | null) => ({ name: 'm', hosted, price: null }) as never;
  expect(() => checkPrices([player(null), player({ isFree: true }), player({ tellsCost: true })])).not.toThrow();
  expect(() => checkPrices([player({})])).toThrow('while the price of m is unknown');
});
