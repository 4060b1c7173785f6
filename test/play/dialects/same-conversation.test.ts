/** One conversation in each format: asked, answered, streamed and recorded alike. */
import { expect, test } from 'vitest';
import type OpenAI from 'openai';

import type { RolloutContext } from '../../../play/agent.ts';
import type { AttemptRecord } from '../../../store/records/groups/trajectories.ts';
import { memoryJournal, playOne, type PlayOptions } from '../play.ts';
import {
  ARGUMENTS,
  MESSAGE_TOOLS,
  postMessages,
  QUESTION,
  RESPONSE_TOOLS,
  schema,
  keyEngine,
  SYSTEM,
  type AnthropicMessage,
  type ResponseParams,
} from './key-engine.ts';

const engine = await keyEngine();

type Play = (context: RolloutContext) => Promise<string | null | undefined>;

const byChat: Play = async ({ openai, model }) => {
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'system', content: SYSTEM },
    { role: 'user', content: QUESTION },
  ];
  const tools = [{ type: 'function' as const, function: { name: 'look', description: 'Looks.', parameters: schema } }];
  const body = { model, messages, tools };
  const first = (await openai.chat.completions.create(body)).choices[0]!.message;
  messages.push(first);
  for (const { id } of first.tool_calls ?? []) messages.push({ role: 'tool', tool_call_id: id, content: `saw ${id}` });
  return (await openai.chat.completions.create(body)).choices[0]?.message.content;
};

/** The form in which LangChain and others write it. */
const byUnusualChat: Play = async ({ openai, model }) => {
  const parameters = { $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema };
  const tools = [
    { function: { parameters, strict: true, description: 'Looks.', name: 'look' }, type: 'function' as const },
  ];
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'developer', content: [{ type: 'text', text: SYSTEM }], name: 'agent' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Where is ' },
        { type: 'text', text: 'the key?' },
      ],
    },
  ];
  const neutral = { store: false, reasoning_effort: 'low', verbosity: 'low', tool_choice: 'auto' } as const;
  const body = { model, messages, tools, ...neutral };
  const first = (await openai.chat.completions.stream(body).finalChatCompletion()).choices[0]!.message;
  const calls = (first.tool_calls ?? []).map(({ id, function: { name, arguments: text } }, index) => {
    return { index, id, type: 'function' as const, function: { name, arguments: JSON.stringify(JSON.parse(text)) } };
  });
  messages.push({ role: 'assistant', content: 'Let me see.', tool_calls: calls });
  for (const { id } of calls)
    messages.push({
      role: 'tool',
      tool_call_id: id,
      content: [{ type: 'text', text: `saw ${id}` }],
      name: 'look',
    } as never);
  return (await openai.chat.completions.create(body)).choices[0]?.message.content;
};

function resultsOf({ output }: OpenAI.Responses.Response): OpenAI.Responses.ResponseInputItem[] {
  const calls = output.filter((item) => item.type === 'function_call');
  return calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: `saw ${call_id}` }));
}

/** `goOn` says how the second request refers to the first. */
function byResponses(
  ask: (openai: OpenAI, body: ResponseParams) => Promise<OpenAI.Responses.Response>,
  goOn: (first: OpenAI.Responses.Response) => Partial<ResponseParams>,
): Play {
  return async ({ openai, model }) => {
    const body = {
      model,
      instructions: SYSTEM,
      tools: RESPONSE_TOOLS,
      include: [],
      text: { verbosity: 'low' as const },
      // Codex sends it.
      client_metadata: { turn: 'random' },
    };
    const first = await ask(openai, { ...body, input: QUESTION });
    return (await ask(openai, { ...body, ...goOn(first) })).output_text;
  };
}

const whole = (openai: OpenAI, body: ResponseParams) => openai.responses.create(body);
const streamed = (openai: OpenAI, body: ResponseParams) => openai.responses.stream(body).finalResponse();
const asked = { role: 'user' as const, content: [{ type: 'input_text' as const, text: QUESTION }] };

const byMessages: Play = async (context) => {
  const messages: object[] = [{ role: 'user', content: QUESTION }];
  const ask = async () =>
    (await (await postMessages(context, { messages, tools: MESSAGE_TOOLS })).json()) as AnthropicMessage;
  const first = await ask();
  const calls = first.content.filter(({ type }) => type === 'tool_use');
  const results = calls.map(({ id }) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: [{ type: 'text', text: `saw ${id}` }],
  }));
  messages.push({ role: 'assistant', content: first.content }, { role: 'user', content: results });
  return (await ask()).content[0]?.text;
};

function play(agent: Play, options: PlayOptions = {}): Promise<AttemptRecord> {
  return playOne(engine, async (context) => Number((await agent(context)) === 'Under the mat.'), options);
}

const ways: [string, Play][] = [
  ['chat in parts, with the members that libraries add', byUnusualChat],
  ['responses', byResponses(whole, (first) => ({ input: [asked, ...(first.output as never[]), ...resultsOf(first)] }))],
  [
    'responses by previous_response_id',
    byResponses(whole, (first) => ({ previous_response_id: first.id, input: resultsOf(first) })),
  ],
  [
    'streamed responses by item_reference',
    byResponses(streamed, (first) => {
      const references = first.output.map(({ id }) => ({ type: 'item_reference' as const, id: id! }));
      return { input: [{ type: 'message', ...asked }, ...references, ...resultsOf(first)] };
    }),
  ],
  ['messages', byMessages],
];

test.each(ways)('a conversation with tools by %s is the same as by chat', async (_, agent) => {
  const [chat, other] = [await play(byChat), await play(agent)];
  expect(other).toMatchObject({ status: 'ok', reward: 1 });
  const facts = ({ calls }: AttemptRecord) =>
    calls.map(({ key, promptTokenIds, tokenIds }) => [key, promptTokenIds, tokenIds]);
  expect(facts(other)).toEqual(facts(chat));
  const called = { function: { name: 'look', arguments: ARGUMENTS } };
  for (const second of [1, 3])
    expect(engine.executed[second]?.request).toMatchObject({
      messages: [{ role: 'system' }, {}, { content: 'Let me see.\n', tool_calls: [called, called] }, {}, {}],
    });
});

test.each(ways)('an attempt by %s is answered from its journal, without the engine', async (_, agent) => {
  const journal = memoryJournal();
  const first = await play(agent, { journal });
  const executed = engine.executed.length;
  expect(await play(agent, { journal })).toEqual(first);
  expect(engine.executed).toHaveLength(executed);
  expect(first.unclaimedAnswers).toBe(0);
});
