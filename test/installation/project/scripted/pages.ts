/** The agents of docs/sdks, each played once. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import type { Agent, Scenario } from 'temper-rl';
import { playAgent, type AnswerFunction } from 'temper-rl/testing';

const folder = new URL('../sdks/', import.meta.url);

/** The answer that each page's agent asks for: a call of its tool, then the text that earns its whole reward. */
const answer: AnswerFunction = ({ messages, tools }) => {
  const [tool] = (tools ?? []) as { function: { name: string } }[];
  const { role } = messages.at(-1)!;
  if (tool && role !== 'tool') return { toolCalls: [{ name: tool.function.name, arguments: { thing: 'key' } }] };
  if (role === 'tool') assert.equal(messages.at(-1)!.content, 'hall');
  const isJson = JSON.stringify(messages).includes('Answer with JSON');
  return isJson ? '{"square": 4}' : 'yes, on the mat in the hall';
};

for (const file of readdirSync(folder)) {
  test(`${file} runs as the page shows it`, async () => {
    const { default: agent } = (await import(new URL(file, folder).href)) as { default: Agent };
    const [scenario] = agent.scenarios as Scenario[];
    const { reward, error, calls } = await playAgent(agent, { scenario: scenario!, answers: answer });
    assert.equal(error, undefined);
    assert.equal(reward, 1);
    assert.ok(calls.length > 0);
  });
}
