/** The agents of the pages, each played once against right answers, which earn a reward. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Agent, Scenario } from 'temper-rl';
import { playAgent, type AnswerFunction } from 'temper-rl/testing';

const folder = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, folder), 'utf8');
const load = async (path: string): Promise<unknown> =>
  ((await import(new URL(path, folder).href)) as { default?: unknown }).default;
const filesIn = (name: string) => readdirSync(new URL(name, folder)).map((file) => `${name}/${file}`);

async function play(file: string, answers: AnswerFunction) {
  const agent = (await load(file)) as Agent;
  const [scenario] = agent.scenarios as Scenario[];
  const hosted = { 'openai/gpt-5-mini': () => 'Yes.' };
  const played = await playAgent(agent, { scenario: scenario!, answers, hosted });
  assert.equal(played.error, undefined);
  assert.equal(played.failure, null);
  assert.ok(played.calls.length > 0);
  return { agent, reward: played.reward };
}

/** The answer that each agent of docs/sdks asks for: a call of its tool, then the text that earns its whole reward. */
const answerOfSdks: AnswerFunction = ({ messages, tools }) => {
  const [tool] = (tools ?? []) as { function: { name: string } }[];
  const { role } = messages.at(-1)!;
  if (tool && role !== 'tool') return { toolCalls: [{ name: tool.function.name, arguments: { thing: 'key' } }] };
  if (role === 'tool') assert.equal(messages.at(-1)!.content, 'hall');
  const isJson = JSON.stringify(messages).includes('Answer with JSON');
  return isJson ? '{"square": 4}' : 'yes, on the mat in the hall';
};

for (const file of filesIn('sdks')) {
  test(`${file} runs as the page shows it`, async () => {
    assert.equal((await play(file, answerOfSdks)).reward, 1);
  });
}

/** Arguments for the tools of pages. */
const ARGUMENTS: Readonly<Record<string, object>> = { read: { id: 7 }, 'get-sum': { a: 17, b: 0 } };

/** A page whose agent asks for something else needs a line here. */
function answerTo(question: string): string {
  const [, left, right] = /^(\d+)\*(\d+)=$/.exec(question) ?? [];
  if (left !== undefined) return String(Number(left) * Number(right));
  // A divisor, or a guess.
  if (/^\d+\/?$/.test(question)) return '1';
  return question.startsWith('Describe ') ? 'It is warm and bright.' : 'The sun, on the mat.';
}

const answerOfPages: AnswerFunction = ({ messages, tools }) => {
  const { role, content } = messages.at(-1)!;
  if (role === 'tool') return String(content);
  const [tool] = (tools ?? []) as { function: { name: string } }[];
  if (tool === undefined) return answerTo(String(content));
  const { name } = tool.function;
  return { toolCalls: [{ name, arguments: ARGUMENTS[name] ?? {} }] };
};

for (const file of JSON.parse(read('agents.json')) as string[]) {
  test(`${file} is rewarded for a right answer`, async () => {
    const { agent, reward } = await play(file, answerOfPages);
    // A judge or people give it later: until then, there are its rewards of other names.
    if (agent.reward !== undefined) assert.equal(reward === null, agent.rewards === undefined);
    else assert.ok(reward! > 0, `the reward is ${reward}; add a right answer to answerTo or ARGUMENTS`);
  });
}

const tested = filesIn('pages').filter((file) => read(file).includes("from 'temper-rl/testing'"));
test(`the tests that pages show pass: ${tested.join(', ')}`, async () => {
  assert.ok(tested.length > 0);
  for (const file of tested) await load(file);
});
