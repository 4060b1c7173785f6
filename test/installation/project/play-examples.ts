/** Plays the examples on other SDKs against scripted answers, and prints what became of each attempt. */
import { playAgent, type ScriptedAnswer, type ScriptedAnswers } from 'temper-rl/testing';
import aiSdk from './examples/ai-sdk/agent.ts';
import anthropicSdk from './examples/anthropic-sdk/agent.ts';
import { Lookup } from './examples/email-search/lookup.ts';
import langgraph from './examples/langgraph/agent.ts';

const scenario = { id: 'mailbox-7', seed: 7 };
const mailbox = new Lookup(scenario);
const word = mailbox.question.slice(8, 11);
const [newest, older] = JSON.parse(mailbox.search(word)) as [number, number];
const said = (id: number) => mailbox.read(id).slice(7, 10);

const call = (name: string, args: object | string): ScriptedAnswer => ({ toolCalls: [{ name, arguments: args }] });
const [search, read] = [call('search', { query: word }), call('read', { id: newest })];
const right = `${said(newest)} ${newest}`;

const scripts: Readonly<Record<string, ScriptedAnswers>> = {
  right: [search, read, right],
  older: [search, call('read', { id: older }), `${said(older)} ${older}`],
  guessed: ({ messages }, index) =>
    index === 0 ? right : ([search, read, right][(messages.length - 1) >> 1] ?? right),
  lost: [call('read', { id: 12 }), search, read, right],
  malformed: (_, index) => [call('search', 'null'), call('delete', {}), call('search', '{"query": ')][index] ?? right,
  endless: () => search,
};

for (const agent of [aiSdk, langgraph, anthropicSdk])
  for (const [script, answers] of Object.entries(scripts)) {
    const { reward, metrics, failure, calls } = await playAgent(agent, { scenario, answers });
    const requests = calls.map(({ request }) => request);
    console.log(JSON.stringify({ agent: agent.name, script, reward, metrics, failure, requests }));
  }
