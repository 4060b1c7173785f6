/** Customer service: what keys earn, and conversations with a customer whom a model plays. */
import { describe, expect, test } from 'vitest';
import agent from '../../examples/customer-service/agent.ts';
import { scenarios } from '../../examples/customer-service/calls.ts';
import conversationAgent from '../../examples/customer-service/conversation-agent.ts';
import { drawTask, SITUATIONS } from '../../examples/customer-service/customers.ts';
import { playAgent, type ScriptedAnswers } from '../../sdk/testing/index.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';

test.each([
  ['back-open', ['1', '2'], { reward: 1, metrics: { resolved: true, looked: true } }],
  ['swap-sent', ['1', '7'], { reward: 1, metrics: { resolved: true } }],
  ['swap-sent', ['1', '4'], { reward: 0.2, metrics: { resolved: false, looked: true } }],
  ['back-open', ['2'], { reward: 0, metrics: { resolved: false, looked: false } }],
  ['back-open', ['8'], { reward: 0, metrics: { illegal: true } }],
  ['back-open', ['1', '1'], { reward: 0, metrics: { illegal: true, looked: true } }],
])('%s with the keys %j', async (name, keys, expected) => {
  const scenario = scenarios.find(({ id }) => id.startsWith(name))!;
  const played = await playAgent(agent, { scenario, answers: keys });
  expect(played).toMatchObject({ failure: null, ...expected });
  expect(played.calls).toHaveLength(keys.length);
  const [first, second] = played.calls.map(({ request }) => String(request.messages[0]?.content));
  const [wish, state] = name.split('-');
  expect(first).toBe(`${wish} ? 1234567`);
  if (second !== undefined) expect(second).toMatch(new RegExp(`^${wish} [A-Z]{2} ${state} 234567$`));
});

describe('a conversation', () => {
  const call = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args }] });
  const seedOf = (name: string) => SITUATIONS.findIndex((situation) => situation.name === name);

  /** The agent's answers to a customer who says who they are, what they want, and agrees. */
  function serve(name: string, answers: ScriptedAnswers, instructions: unknown[] = []) {
    const seed = seedOf(name);
    const greet = ({ messages }: CallRequest) => {
      instructions.push(messages[0]?.content);
      return 'Hello.';
    };
    const hosted = { 'openai/gpt-5-mini': [greet, 'Yes, please.', '[hang up]'] };
    return playAgent(conversationAgent, { scenario: { id: `${name}-${seed}`, seed }, answers, hosted });
  }

  test('the right calls and the price that is said earn 1; the customer’s instructions are not shown to the agent', async () => {
    const { wants, price } = drawTask(seedOf('return'));
    const [order] = /O\d{4}/.exec(wants)!;
    const instructions: unknown[] = [];
    const right = [
      call('get_order', { order }),
      `You get ${price}.00 euros back. Shall I?`,
      call('return_order', { order }),
      'Done.',
    ];
    const played = await serve('return', right, instructions);
    expect(played).toMatchObject({ failure: null, reward: 1, metrics: { state: true, statements: true, turns: 4 } });
    expect(instructions[0]).toContain(wants);
    expect(JSON.stringify(played.calls.at(-1)!.request)).not.toContain(wants);
    const unsaid = await serve('return', [call('return_order', { order }), 'Done.', 'Bye.']);
    expect(unsaid).toMatchObject({ reward: 0, metrics: { state: true, statements: false } });
  });

  test('what the policy forbids is for a human, even if the shop would do it', async () => {
    const [order] = /O\d{4}/.exec(drawTask(seedOf('return-too-late')).wants)!;
    const transferred = await serve('return-too-late', [call('transfer_to_human', { summary: 'a late return' })]);
    expect(transferred).toMatchObject({ failure: null, reward: 1, metrics: { turns: 1 } });
    const returned = await serve('return-too-late', [call('return_order', { order }), 'Done.', 'Bye.']);
    expect(returned).toMatchObject({ reward: 0, metrics: { state: false } });
    const late = await serve('cancel-too-late', [call('cancel_order', { order: 'O1' }), 'I cannot.', 'Bye.']);
    expect(late).toMatchObject({ failure: null, reward: 0 });
  });
});
