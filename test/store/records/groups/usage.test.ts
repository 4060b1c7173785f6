import { expect, test } from 'vitest';

import type { CallRecord, HostedCallRecord } from '../../../../store/records/groups/trajectories.ts';
import { usageOfAttempts } from '../../../../store/records/groups/usage.ts';
import { attemptOf, callOf } from '../made-attempt.ts';

const call = (promptTokenIds: number[], tokenIds: number[]) =>
  callOf([], '', { promptTokenIds, tokenIds, logprobs: tokenIds.map(() => 0) });
const attempt = (calls: CallRecord[], hostedCalls?: HostedCallRecord[]) =>
  attemptOf(0, calls, hostedCalls && { hostedCalls });

const hosted = (model: string, change: Partial<HostedCallRecord>): HostedCallRecord => ({
  model,
  key: 'h',
  occurrence: 0,
  label: null,
  request: { messages: [] },
  choices: [],
  refusal: null,
  promptTokens: 1_000_000,
  completionTokens: 100_000,
  usd: null,
  ...change,
});

test('a prompt is cached as far as it begins as the turn before it, or as the first of its group, except its last token', () => {
  const first = attempt([call([1, 2, 3], [4, 5]), call([1, 2, 3, 4, 5, 6, 7], [8])]);
  expect(usageOfAttempts([first], {})).toEqual({ promptTokens: 10, cachedPromptTokens: 5, sampledTokens: 3 });
  const second = attempt([call([1, 2, 3], [9])]);
  expect(usageOfAttempts([first, second], {})).toEqual({ promptTokens: 13, cachedPromptTokens: 7, sampledTokens: 4 });
  const other = attempt([call([3, 2, 1], [9])]);
  expect(usageOfAttempts([first, other], {})).toMatchObject({ promptTokens: 13, cachedPromptTokens: 5 });
});

test('a call of a hosted model costs what it is known to cost, or else its price; without one, its model is named', () => {
  const calls = [
    hosted('openai/gpt-5-mini', { usd: 3 }),
    hosted('openai/gpt-5-mini', {}),
    hosted('groq/large', {}),
    hosted('groq/silent', { promptTokens: null, completionTokens: null }),
    hosted('own/model', {}),
  ];
  const prices = { 'own/model': { usdPerMillionInput: 1, usdPerMillionOutput: 10 } };
  expect(usageOfAttempts([attempt([], calls)], prices).hosted).toEqual({
    calls: 5,
    promptTokens: 4_000_000,
    completionTokens: 400_000,
    usd: 3 + 0.45 + 2,
    unpriced: ['groq/large', 'groq/silent'],
  });
});
