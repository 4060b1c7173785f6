/** Plays both editions of the examples on other SDKs against scripted answers, and prints what became of each attempt. */
import { playAgent, type ScriptedAnswer, type ScriptedAnswers } from 'temper-rl/testing';
import aiSdk from './examples/ai-sdk/agent.ts';
import aiSdkFull from './examples/ai-sdk/full.ts';
import anthropicSdk from './examples/anthropic-sdk/agent.ts';
import anthropicSdkFull from './examples/anthropic-sdk/full.ts';
import { Lookup } from './examples/email-search/lookup.ts';
import { makeMailbox } from './examples/email-search/mailbox.ts';
import langgraph from './examples/langgraph/agent.ts';
import langgraphFull from './examples/langgraph/full.ts';

type Scripts = Readonly<Record<string, ScriptedAnswers>>;

const call = (name: string, args: object | string): ScriptedAnswer => ({ toolCalls: [{ name, arguments: args }] });

const small = smallEdition({ id: 'mailbox-7', seed: 7 });
for (const agent of [aiSdk, langgraph, anthropicSdk])
  for (const [script, answers] of Object.entries(small.scripts))
    print(agent.name, script, await playAgent(agent, { scenario: small.scenario, answers }));

const full = fullEdition({ id: 'mailbox-3-question-0', seed: 3, question: 0 });
for (const agent of [aiSdkFull, langgraphFull, anthropicSdkFull])
  for (const [script, answers] of Object.entries(full.scripts))
    print(agent.name, script, await playAgent(agent, { scenario: full.scenario, answers }));

function smallEdition(scenario: { id: string; seed: number }) {
  const mailbox = new Lookup(scenario);
  const word = mailbox.question.slice(8, 11);
  const [newest, older] = JSON.parse(mailbox.search(word)) as [number, number];
  const said = (id: number) => mailbox.read(id).slice(7, 10);
  const [search, read] = [call('search', { query: word }), call('read', { id: newest })];
  const right = `${said(newest)} ${newest}`;
  const scripts: Scripts = {
    right: [search, read, right],
    older: [search, call('read', { id: older }), `${said(older)} ${older}`],
    guessed: ({ messages }, index) =>
      index === 0 ? right : ([search, read, right][(messages.length - 1) >> 1] ?? right),
    lost: [call('read', { id: 12 }), search, read, right],
    malformed: (_, index) => [call('search', 'null'), call('delete', {}), call('search', '{"query": ')][index] ?? right,
    endless: () => search,
  };
  return { scenario, scripts };
}

function fullEdition(scenario: { id: string; seed: number; question: number }) {
  const { questions, mails } = makeMailbox(scenario.seed);
  const { answer, sources } = questions[scenario.question]!;
  const { subject } = mails.find(({ id }) => id === sources[0])!;
  const search = call('search', { query: subject, after: '2024-01-01' });
  const read = call('read', { id: sources[0] });
  const right = `The newest mail tells.\nAnswer: ${answer}\nSources: ${sources.join(', ')}`;
  const scripts: Scripts = {
    right: [search, read, right],
    mistaken: [call('search', { query: '*' }), call('read', { id: 5 }), search, read, right],
    unknown: ["Answer: I don't know\nSources: none"],
    wrong: [search, read, `Answer: nothing\nSources: ${sources[0]}`],
    endless: () => search,
  };
  return { scenario, scripts };
}

function print(agent: string, script: string, played: Awaited<ReturnType<typeof playAgent>>): void {
  const { reward, metrics, failure, calls } = played;
  console.log(
    JSON.stringify({ agent, script, reward, metrics, failure, requests: calls.map(({ request }) => request) }),
  );
}
