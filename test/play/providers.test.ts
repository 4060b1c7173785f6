import { expect, test } from 'vitest';

import { findHostedModel, findProvider, nameMaxTokens, PROVIDER_NAMES } from '../../play/connections/providers.ts';

test.each(PROVIDER_NAMES)('%s has an address that is complete, and a key under its own name or none', (name) => {
  const provider = findProvider(name);
  expect(URL.canParse(provider?.baseUrl ?? '')).toBe(true);
  expect(provider?.baseUrl).not.toMatch(/\/$/);
  expect([`${name.toUpperCase()}_API_KEY`, null]).toContain(provider?.keyVariable);
});

test('a model is named by its provider, slashes of its own included', () => {
  expect(findHostedModel('openrouter/qwen/qwen3-4b', { OPENROUTER_API_KEY: 'secret' })).toMatchObject({
    name: 'openrouter/qwen/qwen3-4b',
    model: 'qwen/qwen3-4b',
    baseUrl: 'https://openrouter.ai/api/v1',
    key: 'secret',
  });
  expect(findHostedModel('ollama/qwen3:4b', {})).toMatchObject({ model: 'qwen3:4b', key: null, isFree: true });
});

test('a gateway of one’s own stands in the environment', () => {
  const env = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'https://gateway.test/openai' };
  expect(findHostedModel('openai/gpt-5', env)?.baseUrl).toBe('https://gateway.test/openai');
});

test.each(['pocket', 'demo@3', 'Qwen/Qwen3-4B', './openai/model', 'constructor/x'])('%s is no hosted model', (name) => {
  expect(findHostedModel(name, {})).toBeNull();
});

test.each([{}, { ANTHROPIC_API_KEY: '' }])('a key that is missing is named (%j)', (env) => {
  expect(() => findHostedModel('anthropic/claude', env)).toThrow(
    'anthropic/claude needs a key in ANTHROPIC_API_KEY, which is not set; export it',
  );
});

test('a server without a name is named by its URL', () => {
  expect(findHostedModel('http://127.0.0.1:8000/v1#Qwen/Qwen3-4B', {})).toMatchObject({
    baseUrl: 'http://127.0.0.1:8000/v1',
    model: 'Qwen/Qwen3-4B',
    key: null,
  });
});

test.each(['max_tokens', 'max_completion_tokens'])('%s reaches a server that is named by its URL as it is', (name) => {
  const env = { OPENAI_API_KEY: 'k', GROQ_API_KEY: 'k' };
  const asked = (model: string) => nameMaxTokens(findHostedModel(model, env)!, { [name]: 7, n: 1 });
  expect(asked('http://127.0.0.1:8000/v1#m')).toEqual({ [name]: 7, n: 1 });
  expect(asked('openai/m')).toEqual({ max_completion_tokens: 7, n: 1 });
  expect(asked('groq/m')).toEqual({ max_tokens: 7, n: 1 });
});

test.each([
  ['openai/', /does not name a model/],
  ['http://127.0.0.1:8000/v1', /must be URL#MODEL/],
  ['https://#x', /must be URL#MODEL/],
])('%s is refused with a clear word', (name, message) => {
  expect(() => findHostedModel(name, { OPENAI_API_KEY: 'k' })).toThrow(message);
});
