import { expect, test } from 'vitest';

import { resolveJudge } from '../../../sdk/ruler/judge-endpoint.ts';
import { withAddress } from '../../../play/connections/providers.ts';
import { hasPrice, priceOf, requireJudgeKey, type HostedJudge } from '../../../play/judge/judge-model.ts';
import { createRuler, type RulerOptions } from '../../../sdk/ruler/create-ruler.ts';
import { isRuler } from '../../../play/judge/ruler.ts';

const NO_PRICES = { usdPerMillionInput: null, usdPerMillionOutput: null };

test.each([
  ['openai/gpt-5-mini', 'https://api.openai.com/v1', 'OPENAI_API_KEY'],
  ['anthropic/claude-opus-4-6', 'https://api.anthropic.com/v1', 'ANTHROPIC_API_KEY'],
  ['gemini/gemini-2.5-flash', 'https://generativelanguage.googleapis.com/v1beta/openai', 'GEMINI_API_KEY'],
  ['openrouter/qwen/qwen3-32b', 'https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY'],
  ['together/Qwen/Qwen3-32B', 'https://api.together.xyz/v1', 'TOGETHER_API_KEY'],
  ['groq/qwen/qwen3-32b', 'https://api.groq.com/openai/v1', 'GROQ_API_KEY'],
  ['mistral/mistral-small-latest', 'https://api.mistral.ai/v1', 'MISTRAL_API_KEY'],
  ['xai/grok-4', 'https://api.x.ai/v1', 'XAI_API_KEY'],
  ['deepseek/deepseek-chat', 'https://api.deepseek.com/v1', 'DEEPSEEK_API_KEY'],
])('%s is asked at %s, with the key in %s', (name, baseUrl, keyVariable) => {
  const judge = resolveJudge(name);
  expect(judge).toMatchObject({ kind: 'hosted', name, baseUrl, keyVariable, model: name.slice(name.indexOf('/') + 1) });
  expect(requireJudgeKey(judge, { [keyVariable]: 'secret' })).toBe('secret');
  expect(() => requireJudgeKey(judge, {})).toThrow(`needs a key in ${keyVariable}, which is not set; export it`);
});

test('a gateway of one’s own stands in the environment', () => {
  const judge = resolveJudge('openai/gpt-5-mini') as HostedJudge;
  expect(withAddress(judge, { OPENAI_BASE_URL: 'https://gateway.test/openai' }).baseUrl).toBe(
    'https://gateway.test/openai',
  );
  expect(withAddress(judge, {}).baseUrl).toBe('https://api.openai.com/v1');
});

test('a local server needs no key, and costs nothing', () => {
  const judge = resolveJudge('ollama/qwen3');
  expect(requireJudgeKey(judge, {})).toBeNull();
  expect(priceOf(judge, NO_PRICES, { promptTokens: 5, completionTokens: 5, cost: null })).toBe(0);
});

test('the engine of the run is a judge, by a base model or a checkpoint', () => {
  expect(resolveJudge('engine/demo@100')).toEqual({ kind: 'engine', name: 'engine/demo@100', model: 'demo@100' });
});

test('any other endpoint goes by its address, which is no part of its name', () => {
  const endpoint = { baseUrl: 'https://judges.example.com/api/v1/', model: 'big', keyVariable: 'BIG_KEY' };
  expect(resolveJudge(endpoint)).toMatchObject({
    name: 'endpoint/big',
    baseUrl: 'https://judges.example.com/api/v1',
    keyVariable: 'BIG_KEY',
  });
  expect(resolveJudge({ ...endpoint, name: 'mine' }).name).toBe('mine/big');
});

test('what is cost is told by the provider where it tells it, else known by prices alone', () => {
  const openrouter = resolveJudge('openrouter/x');
  const openai = resolveJudge('openai/x');
  const used = { promptTokens: 1_000_000, completionTokens: 500_000, cost: 0.25 };
  expect(priceOf(openrouter, NO_PRICES, used)).toBe(0.25);
  expect(priceOf(openai, NO_PRICES, used)).toBeNull();
  expect(priceOf(openai, { usdPerMillionInput: 1, usdPerMillionOutput: 4 }, used)).toBe(3);
  expect([hasPrice(openrouter, NO_PRICES), hasPrice(openai, NO_PRICES)]).toEqual([true, false]);
});

test('a ruler has defaults, and is known as one wherever its module was loaded', () => {
  const ruler = createRuler({ judge: 'openai/gpt-5-mini' });
  expect(isRuler(ruler)).toBe(true);
  expect(ruler).toMatchObject({ weights: { ruler: 1, agent: 0 }, maxCharsPerAttempt: 40_000 });
  expect(ruler.rubric).toContain('Attempts that are equally good get the same score');
  expect([isRuler({}), isRuler(null), isRuler('ruler')]).toEqual([false, false, false]);
});

const good = { judge: 'openai/gpt-5-mini' };
test.each<[string, unknown, string]>([
  ['nothing', undefined, 'ruler must be given an object'],
  ['a judge without provider', { judge: 'gpt-5' }, 'the judge must be provider/model'],
  ['an unknown provider', { judge: 'acme/gpt' }, 'one of openai, anthropic, gemini'],
  ['a prototype’s member', { judge: 'constructor/gpt' }, 'the judge must be provider/model'],
  ['no address', { judge: { baseUrl: 'judges', model: 'x' } }, 'must be an http(s) URL'],
  [
    'a key in the address',
    { judge: { baseUrl: 'https://me:key@x.com/v1', model: 'x' } },
    'without user, password, query or fragment',
  ],
  [
    'a name that is none',
    { judge: { baseUrl: 'https://x.com', model: 'x', name: 'a b' } },
    'name of the judge must be',
  ],
  ['no model', { judge: { baseUrl: 'https://x.com/v1' } }, 'ruler.judge must be given model'],
  ['a typo', { ...good, rubrik: 'x' }, 'got rubrik; correct its name, or remove it'],
  ['an empty rubric', { ...good, rubric: ' ' }, 'rubric of ruler must be text'],
  ['weights without effect', { ...good, weights: { ruler: 0, agent: 1 } }, 'ruler above 0 (else it has no effect)'],
  ['half the weights', { ...good, weights: { ruler: 1 } }, 'weights of ruler must be { ruler, agent }'],
  ['half a price', { ...good, usdPerMillionInput: 1 }, 'have an effect only together'],
  ['a negative price', { ...good, usdPerMillionInput: -1, usdPerMillionOutput: 1 }, 'must be a number of at least 0'],
  [
    'a bound that leaves nothing',
    { ...good, maxCharsPerAttempt: 10 },
    'maxCharsPerAttempt of ruler must be a whole number',
  ],
  ['messages of its own', { ...good, request: { messages: [] } }, 'must not set messages'],
])('%s is refused', (_, options, complaint) => {
  expect(() => createRuler(options as RulerOptions)).toThrow(complaint);
});
