/** Plays the agents of email-search on other SDKs against scripted answers, and prints what became of each attempt. */
import { playAgent, type ScriptedAnswer, type ScriptedAnswers } from 'temper-rl/testing';
import { Inbox } from './examples/email-search/inbox.ts';
import aiSdk from './examples/email-search/sdks/ai-sdk.ts';
import anthropicSdk from './examples/email-search/sdks/anthropic.ts';
import langgraph from './examples/email-search/sdks/langgraph.ts';

const call = (name: string, args: object | string): ScriptedAnswer => ({ toolCalls: [{ name, arguments: args }] });

const scenario = { id: 'mailbox-7', seed: 7 };
for (const agent of [aiSdk, langgraph, anthropicSdk])
  for (const [script, answers] of Object.entries(scriptsOf(scenario)))
    print(agent.name, script, await playAgent(agent, { scenario, answers }));

function scriptsOf(of: { id: string; seed: number }): Readonly<Record<string, ScriptedAnswers>> {
  const inbox = new Inbox(of);
  const word = inbox.question.slice(8, 11);
  const [newest, older] = JSON.parse(inbox.search(word)) as [number, number];
  const said = (id: number) => inbox.read(id).slice(7, 10);
  const [search, read] = [call('search', { query: word }), call('read', { id: newest })];
  const right = `${said(newest)} ${newest}`;
  return {
    right: [search, read, right],
    older: [search, call('read', { id: older }), `${said(older)} ${older}`],
    guessed: ({ messages }, index) =>
      index === 0 ? right : ([search, read, right][(messages.length - 1) >> 1] ?? right),
    lost: [call('read', { id: 12 }), search, read, right],
    malformed: (_, index) => [call('search', 'null'), call('delete', {}), call('search', '{"query": ')][index] ?? right,
    endless: () => search,
  };
}

function print(agent: string, script: string, played: Awaited<ReturnType<typeof playAgent>>): void {
  const { reward, metrics, failure, calls } = played;
  console.log(
    JSON.stringify({ agent, script, reward, metrics, failure, requests: calls.map(({ request }) => request) }),
  );
}
