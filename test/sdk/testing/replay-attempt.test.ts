/** Recorded attempts, played again by an agent that is as it was, and by one that has changed. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { DEFAULT_ROLLOUT } from '../../../core/rules/run-defaults.ts';
import type { Agent } from '../../../play/agent.ts';
import { saveAttempt, type SavedAttempt } from '../../../play/replay/saved-attempt.ts';
import { playSingle, type SingleOptions } from '../../../play/single-attempt.ts';
import { defineAgent, policy } from '../../../sdk/index.ts';
import { replayAttempt } from '../../../sdk/testing/index.ts';
import { ScriptedEngine } from '../../../sdk/testing/scripted-engine.ts';
import { ScriptedHosted } from '../../../sdk/testing/play-agent.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

interface Talk {
  questions: readonly string[];
  chance?: () => number;
}

const DRAWN: number[] = [];

/** Asks its questions in one conversation that grows; its reward is what it drew. */
function talker({ questions, chance }: Talk): Agent {
  return defineAgent({
    name: 'talker',
    scenarios: [],
    async rollout({ openai, model, random, once, log }) {
      const messages: { role: 'user' | 'assistant'; content: string }[] = [];
      for (const content of questions) {
        messages.push({ role: 'user', content: chance === undefined ? content : `${content} ${chance()}` });
        const { choices, usage } = await openai.chat.completions.create({ model, messages });
        messages.push({ role: 'assistant', content: choices[0]?.message.content ?? '' });
        log(usage?.completion_tokens);
      }
      const drawn = await once('draw', () => {
        DRAWN.push(DRAWN.length);
        return DRAWN.length;
      });
      return { reward: random(), metrics: { drawn } };
    },
  });
}

const QUESTIONS = ['Who is there?', 'Which Ada do you mean, of the two that I know?'];

async function record(agent: Agent, hosted: ScriptedHosted | null = null): Promise<SavedAttempt> {
  const engine = new ScriptedEngine(['Ada.', 'Lovelace.']);
  const options: SingleOptions = {
    agent,
    engine,
    planned: { attempt: 3, scenarioIndex: 5, scenario: { id: 'door' } },
    policy: { model: 'demo@3', adapterSha256: null },
    mode: 'train',
    rollout: DEFAULT_ROLLOUT,
    place: { seed: 1, branch: 0, step: 4 },
    signal: new AbortController().signal,
    onRecorder: (recorder) => engine.attach(recorder),
    ...(hosted && { connectHosted: (model) => hosted.connect(model) }),
  };
  return saveAttempt(await playSingle(options), options);
}

let saved: SavedAttempt;
beforeAll(async () => {
  saved = await record(talker({ questions: QUESTIONS }));
});

test('an agent that is as it was gets each recorded answer, and earns the same', async () => {
  const drawn = DRAWN.length;
  const replayed = await replayAttempt(talker({ questions: QUESTIONS }), saved);
  expect(replayed).toMatchObject({ reward: saved.reward, metrics: saved.metrics, logs: saved.logs });
  expect(replayed).toMatchObject({ failure: null, changed: null, notAsked: [] });
  expect(replayed.calls.map(({ message }) => message.content)).toEqual(['Ada.', 'Lovelace.']);
  expect(DRAWN).toHaveLength(drawn);
});

test('a file does as well, and one that is none is refused by name', async () => {
  const file = join(temporaryFolder(), 'attempt.json');
  await writeFile(file, JSON.stringify(saved));
  expect(await replayAttempt(talker({ questions: QUESTIONS }), file)).toMatchObject({ reward: saved.reward });
  await writeFile(file, '{"schema": 1}');
  await expect(replayAttempt(talker({ questions: QUESTIONS }), file)).rejects.toThrow(
    `${file} must be an attempt that temper try --save has written`,
  );
});

test('roles that policies of their own played are answered by each of them', async () => {
  const agent = defineAgent({
    name: 'game',
    scenarios: [],
    roles: { x: policy(), o: policy('o') },
    async rollout({ roles }) {
      for (const { openai, model } of [roles.x, roles.o])
        await openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'move?' }] });
      return { roleRewards: { x: 1, o: -1 } };
    },
  });
  const kept = await record(agent);
  expect(kept).toMatchObject({ players: { trained: { x: 'main', o: 'o' } }, roleRewards: { x: 1, o: -1 } });
  const [x, o] = [
    { model: 'demo@3', adapterSha256: 'a'.repeat(64) },
    { model: 'demo@3:o', adapterSha256: 'b'.repeat(64) },
  ];
  const calls = kept.calls.map((call) => {
    const { adapterSha256 } = call.role === 'x' ? x : o;
    return { ...call, answer: { ...call.answer, adapter_sha256: adapterSha256 } };
  });
  const replayed = await replayAttempt(agent, { ...kept, players: { ...kept.players!, seated: { x, o } }, calls });
  expect(replayed).toMatchObject({ reward: 0, failure: null, changed: null, notAsked: [] });
});

describe('answers of hosted models', () => {
  const asking = (question: string) =>
    defineAgent({
      name: 'asker',
      scenarios: [],
      rollout: async ({ openai, model, hosted }) => {
        const other = hosted('openai/gpt-5-mini');
        const messages = [{ role: 'user' as const, content: question }];
        const { choices } = await other.openai.chat.completions.create({ model: other.model, messages });
        const content = String(choices[0]?.message.content);
        await openai.chat.completions.create({ model, messages: [{ role: 'user', content }] });
        return content.length;
      },
    });
  const models = () => new ScriptedHosted({ 'openai/gpt-5-mini': ['Ask for Ada.'] });

  test('stand in the record, and need neither a key nor the network', async () => {
    const kept = await record(asking('Whom?'), models());
    expect(kept.hostedCalls).toMatchObject([{ model: 'openai/gpt-5-mini', occurrence: 0 }]);
    const replayed = await replayAttempt(asking('Whom?'), kept);
    expect(replayed).toMatchObject({ reward: 12, changed: null, notAsked: [] });
    expect(replayed.hostedCalls).toHaveLength(1);
  });

  test('are saved with their role, and of two values under one name the first', () => {
    const call = { model: 'a/b', key: 'k', occurrence: 0, label: null, role: 'user', request: { messages: [] } };
    const entries = [{ a: 0, k: 'k', o: 0, r: { id: 1 } }, ...[1, 2].map((v) => ({ a: 0, n: 'x', v }))];
    const played = { hostedCalls: [call], metrics: {}, failure: null, logs: [] };
    const planned = { scenario: { id: 's' }, scenarioIndex: 0, attempt: 0 };
    const options = { agent: { name: 'a' }, policy: { model: 'm', adapterSha256: null }, planned };
    const kept = saveAttempt({ record: played, asked: [], entries } as never, options as never);
    expect(kept).toMatchObject({ hostedCalls: [{ ...call, answer: { id: 1 } }], once: { x: 1 } });
  });

  test('whose question has changed are shown beside it', async () => {
    const { changed, notAsked } = await replayAttempt(asking('Who?'), await record(asking('Whom?'), models()));
    expect(changed).toMatchObject({ call: 1, recorded: { messages: [{ content: 'Whom?' }] } });
    expect(changed?.text).toMatch(/^call 1 of openai\/gpt-5-mini is not the recorded one:\nmessages\[0\]\.content/);
    expect(notAsked).toHaveLength(2);
  });

  test('that the record does not have are told of', async () => {
    const { changed } = await replayAttempt(asking('Whom?'), saved);
    expect(changed?.text).toBe(
      'the agent asks for answer 1 of openai/gpt-5-mini, but the record has 0: {"role":"user","content":"Whom?"}',
    );
  });
});

describe('an agent that has changed', () => {
  test('is answered up to the first request that differs, which is shown to the character', async () => {
    const [first = ''] = QUESTIONS;
    const changed = talker({ questions: [first, 'Which Ada do you mean, of the three that I know?'] });
    const replayed = await replayAttempt(changed, saved);
    expect(replayed.reward).toBeNull();
    expect(replayed.calls.map(({ message }) => message.content)).toEqual(['Ada.']);
    expect(replayed.changed?.call).toBe(2);
    expect(replayed.changed?.text).toMatchInlineSnapshot(`
      "call 2 is not the recorded one:
      messages[2].content, character 32
        recorded: …"hich Ada do you mean, of the two that I know?"
        now:      …"hich Ada do you mean, of the three that I know?""
    `);
    expect(replayed.notAsked).toHaveLength(1);
  });

  test('may ask further than the record goes', async () => {
    const { changed } = await replayAttempt(talker({ questions: [...QUESTIONS, 'And why?'] }), saved);
    expect(changed).toMatchObject({ call: 3, recorded: null });
    expect(changed?.text).toBe(
      'the agent asks for answer 3, but the record has 2: {"role":"user","content":"And why?"}',
    );
  });

  test('may end before the record does', async () => {
    const { changed, failure, notAsked } = await replayAttempt(talker({ questions: QUESTIONS.slice(0, 1) }), saved);
    expect({ changed, failure }).toEqual({ changed: null, failure: null });
    expect(notAsked.map(({ request }) => request.messages.length)).toEqual([3]);
  });

  test('is told of parameters and tools that are others', async () => {
    const agent = defineAgent({
      name: 'talker',
      scenarios: [],
      rollout: async ({ openai, model }) => {
        const messages = [{ role: 'user' as const, content: QUESTIONS[0]! }];
        await openai.chat.completions.create({ model, messages, max_tokens: 9, stop: ['.'] });
        return 1;
      },
    });
    const { changed } = await replayAttempt(agent, saved);
    expect(changed?.differences).toEqual([
      { path: 'max_tokens', recorded: 512, asked: 9 },
      { path: 'stop', recorded: undefined, asked: ['.'] },
    ]);
  });

  test('whose prompts hold chance is found out', async () => {
    let draws = 0;
    const agent = talker({ questions: QUESTIONS, chance: () => draws++ });
    const { changed } = await replayAttempt(agent, await record(agent));
    expect(changed?.text).toContain('"Who is there? 0"');
  });
});
