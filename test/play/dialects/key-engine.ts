/** An engine that looks for a key with tools, and what is asked of it in each format. */
import type OpenAI from 'openai';

import type { RolloutContext } from '../../../play/agent.ts';
import type { FakeEngine } from '../../fake-engine.ts';
import { sharedEngine } from '../shared-engine.ts';

export type ResponseParams = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>;

/** Arguments that a model wrote: with blanks, and a number that JavaScript would write otherwise. */
export const ARGUMENTS = '{"at": "the map", "zoom": 1.0}';
export const schema = { type: 'object' as const, properties: { at: { type: 'string' } }, required: ['at'] };
export const SYSTEM = 'You find keys.';
export const QUESTION = 'Where is the key?';

/** One for all tests of a file. */
export function keyEngine(): Promise<FakeEngine> {
  return sharedEngine({
    answer: ({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? 'Under the mat.'
        : {
            content: 'Let me see.\n',
            toolCalls: ['a', 'b'].map((id) => ({
              id: `call-${id}`,
              type: 'function',
              function: { name: 'look', arguments: ARGUMENTS },
            })),
            malformedToolCalls: 0,
          },
  });
}

export const RESPONSE_TOOLS = [
  { type: 'function' as const, name: 'look', description: 'Looks.', parameters: schema, strict: true },
];

export interface AnthropicMessage {
  id: string;
  content: { type: string; id: string; text: string; input: object }[];
  [member: string]: unknown;
}

/** With or without `/v1`, as clients add it. */
export async function postMessages({ fetch, baseURL, apiKey, model }: RolloutContext, body: object): Promise<Response> {
  const request = { max_tokens: 4096, model, system: [{ type: 'text', text: SYSTEM }], ...body };
  return fetch(new URL(`${baseURL}/v1/messages?beta=true`), {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' },
    body: new TextEncoder().encode(JSON.stringify(request)),
  });
}

export const MESSAGE_TOOLS = [
  {
    name: 'look',
    description: 'Looks.',
    input_schema: schema,
    cache_control: { type: 'ephemeral' },
    eager_input_streaming: true,
  },
];
