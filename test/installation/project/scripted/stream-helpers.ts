/** One question, asked by the stream helper of each SDK, and its scripted answer: some text and a call of a tool. */
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { defineAgent, type RolloutContext } from 'temper-rl';
import { playAgent, type ScriptedAnswers } from 'temper-rl/testing';
import { z } from 'zod';

export const QUESTION = 'Where is the key?';
export const SAYS = 'Let me look.';
export const ARGUMENTS = '{"thing":"key"}';
export const LOOKS = { content: SAYS, toolCalls: [{ name: 'look', arguments: ARGUMENTS }] };
export const name = 'look';
export const parameters = { type: 'object' as const, properties: { thing: { type: 'string' } }, required: ['thing'] };

export const openai = ({ baseURL, apiKey, fetch }: RolloutContext) => new OpenAI({ baseURL, apiKey, fetch });
const anthropic = ({ baseURL, apiKey, fetch }: RolloutContext) =>
  new Anthropic({ baseURL: baseURL.replace('/v1', ''), apiKey, fetch });

export async function play(rollout: (context: RolloutContext) => Promise<void>, answers: ScriptedAnswers = [LOOKS]) {
  const agent = defineAgent({ name: 'streams', scenarios: [], rollout: (context) => rollout(context).then(() => 1) });
  const { error, calls } = await playAgent(agent, { scenario: { id: 'key' }, answers });
  assert.equal(error, undefined);
  return calls;
}

export const chatBody = { messages: [{ role: 'user' as const, content: QUESTION }], max_tokens: 32 };
export const chat = (context: RolloutContext) =>
  openai(context).chat.completions.stream({
    ...chatBody,
    model: context.model,
    tools: [{ type: 'function', function: { name, parameters } }],
    stream_options: { include_usage: true },
  });

export const responses = (context: RolloutContext) =>
  openai(context).responses.stream({
    model: context.model,
    input: QUESTION,
    max_output_tokens: 32,
    tools: [{ type: 'function', name, parameters, strict: false }],
  });

export const messages = (context: RolloutContext) =>
  anthropic(context).messages.stream({
    model: context.model,
    max_tokens: 32,
    messages: [{ role: 'user', content: QUESTION }],
    tools: [{ name, input_schema: parameters }],
  });

export const tools = { look: tool({ inputSchema: z.object({ thing: z.string() }), execute: () => 'hall' }) };
export const text = ({ baseURL, apiKey, fetch, model }: RolloutContext, abortSignal?: AbortSignal) => {
  const provider = createOpenAICompatible({ name: 'temper', baseURL, apiKey, fetch, includeUsage: true });
  const stopWhen = stepCountIs(2);
  return streamText({ model: provider(model), prompt: QUESTION, tools, stopWhen, maxRetries: 0, abortSignal });
};
