import { SCHEMA_DEFAULTS } from '../../core/contract/schema-defaults.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';

import { defineAgent, ruler, tool, toolLoop } from '../../sdk/index.ts';
import type { RolloutContext } from '../../play/agent.ts';
import { conversationOf } from '../../store/records/judging/conversation.ts';
import { judgeByAgent, judgeTurns } from '../../store/records/groups/group-result.ts';
import {
  decodeRollouts,
  encodeRollouts,
  inPlayOrder,
  type AttemptRecord,
} from '../../store/records/groups/trajectories.ts';
import { memoryJournal, playAttempts, playOne, type TestRollout } from './play.ts';
import { sharedEngine, temporaryEngine } from './shared-engine.ts';
import { rolloutsOf } from '../store/records/made-attempt.ts';

const engine = await sharedEngine();

function ask({ openai, model }: Pick<RolloutContext, 'openai' | 'model'>, content: string, more: object = {}) {
  return openai.chat.completions.create({ model, messages: [{ role: 'user', content }], ...more });
}

const turnsOf = ({ calls }: AttemptRecord) =>
  calls
    .map(({ request, turn, reward }) => [request.messages[0]?.content, turn, reward])
    .toSorted(([left], [right]) => String(left).localeCompare(String(right)));

/** Lengths of the records of a journal's segment, in bytes. */
function readLengths(segment: Uint8Array): number[] {
  const bytes = Buffer.from(segment);
  const lengths: number[] = [];
  for (let start = 0; start < bytes.length; start += lengths.at(-1)!) lengths.push(8 + bytes.readUInt32LE(start));
  return lengths;
}

test('what turns earned is part of the reward, and stands with their calls', async () => {
  const attempt = await playOne(engine, async (context) => {
    const first = await ask(context, 'a');
    await ask(context, 'b');
    const third = await ask(context, 'c');
    context.rewardTurn(first, 0.25);
    context.rewardTurn(third.choices[0]!, 0.5);
    context.rewardTurn({ ...third.choices[0]! }, 1);
    return 2;
  });
  expect(attempt).toMatchObject({ status: 'ok', reward: 3.75 });
  expect(turnsOf(attempt)).toEqual([
    ['a', 0, 0.25],
    ['b', 1, undefined],
    ['c', 2, 1.5],
  ]);
});

test('where no turn of a group has a reward, nothing of turns is written', async () => {
  const attempts = await playAttempts(engine, async (context) => Number((await ask(context, 'a')).id !== ''), {
    attempts: 2,
  });
  const text = JSON.stringify((await decodeRollouts(await encodeRollouts(rolloutsOf(attempts)), 'x')).attempts);
  expect(text).not.toMatch(/"turn"|turnRewards/);
  expect(judgeByAgent(rolloutsOf(attempts), 'b', SCHEMA_DEFAULTS.train)).not.toHaveProperty('turnRewards');
});

test('where one attempt has any, the others of its group say which turn is which', async () => {
  let attempt = 0;
  const played = await playAttempts(
    engine,
    async (context) => {
      const rewarded = attempt++ === 1;
      const first = await ask(context, 'a');
      await ask(context, 'b');
      if (rewarded) context.rewardTurn(first, 1);
      return 0;
    },
    { attempts: 2, concurrency: 1 },
  );
  expect(played.map(turnsOf)).toEqual([
    [
      ['a', 0, undefined],
      ['b', 1, undefined],
    ],
    [
      ['a', 0, 1],
      ['b', 1, undefined],
    ],
  ]);
  const { rewards, turnRewards } = judgeByAgent(rolloutsOf(played), 'b', SCHEMA_DEFAULTS.train);
  expect(rewards).toEqual([0, 1]);
  expect(turnRewards?.[0]).toBeNull();
  expect(turnRewards?.[1]?.toSorted()).toEqual([0, 1]);
});

test('calls that wait for their answers at the same time are one turn, with all that comes after', async () => {
  const attempt = await playOne(engine, async (context) => {
    context.rewardTurn(await ask(context, 'a'), 1);
    await Promise.all([ask(context, 'b'), ask(context, 'c')]);
    await ask(context, 'd');
    return 0;
  });
  expect(turnsOf(attempt).map(([, turn]) => turn)).toEqual([0, 1, 1, 1]);
});

test('where calls overlapped is kept: a repetition that is answered at once has the same turns', async () => {
  const slow = await temporaryEngine({ delayMs: 100 });
  const journal = memoryJournal();
  const play = () =>
    playOne(
      slow,
      async (context) => {
        context.rewardTurn(await ask(context, 'first'), 1);
        const left = (async () => [await ask(context, 'a'), await ask(context, 'bb')])();
        // Whoever asks late finds the others waiting, or, answered from the journal, long done.
        await sleep(20);
        await Promise.all([left, ask(context, 'ccc')]);
        await ask(context, 'dddd');
        return 0;
      },
      { journal },
    );
  const first = await play();
  expect(turnsOf(first).map(([, turn]) => turn)).toEqual([1, 1, 1, 1, 0]);
  const [segment] = journal.segments;
  expect(await play()).toEqual(first);
  // The process died when two calls were answered: the others are asked anew.
  const records = readLengths(segment!);
  const end = records.slice(0, 3).reduce((a, b) => a + b);
  journal.segments.splice(0, journal.segments.length, segment!.slice(0, end));
  expect(await play()).toEqual(first);
});

describe('the order of play', () => {
  const judged = ruler({
    judge: { baseUrl: 'http://127.0.0.1:1/v1', model: 'judge' },
    weights: { agent: 1, ruler: 1 },
  });
  const rollout: TestRollout = async (context) => {
    for (const content of ['the longest', 'b', 'middle']) await ask(context, content);
    return 0;
  };
  const playJudged = (play: TestRollout, journal = memoryJournal()) =>
    playOne(engine, play, {
      journal,
      agent: defineAgent({ name: 'judged', scenarios: [], reward: judged, rollout: play }),
    } as never);
  const asked = ({ calls }: AttemptRecord) => inPlayOrder(calls).map(({ request }) => request.messages[0]?.content);

  test('is told where a judge reads, and the record has another order', async () => {
    const attempt = await playJudged(rollout);
    expect(attempt.calls.map(({ turn }) => turn)).toEqual([1, 2, 0]);
    expect(asked(attempt)).toEqual(['the longest', 'b', 'middle']);
    expect(conversationOf(attempt).messages[0]?.content).toBe('the longest');
  });

  test('is the same, byte for byte, wherever the attempt is played again from its journal', async () => {
    const journal = memoryJournal();
    const first = JSON.stringify(await playJudged(rollout, journal));
    const [segment] = journal.segments;
    const lengths = readLengths(segment!);
    expect(lengths).toHaveLength(3);
    for (let kept = 0; kept <= lengths.length; kept++) {
      const end = lengths.slice(0, kept).reduce((sum, length) => sum + length, 0);
      const again = await playJudged(rollout, memoryJournal([segment!.slice(0, end)]));
      expect(JSON.stringify(again)).toBe(first);
    }
  });

  test('is not told where nobody judges, where the record has it, or where calls overlapped', async () => {
    const ascending: TestRollout = async (context) => {
      for (const content of ['b', 'middle', 'the longest']) await ask(context, content);
      return 0;
    };
    const overlapping: TestRollout = async (context) => {
      await Promise.all(['the longest', 'b'].map((content) => ask(context, content)));
      await ask(context, 'middle');
      return 0;
    };
    const attempts = [await playOne(engine, rollout), await playJudged(ascending), await playJudged(overlapping)];
    for (const attempt of attempts) {
      expect(attempt.status).toBe('ok');
      expect(JSON.stringify(attempt)).not.toContain('"turn"');
      expect(asked(attempt)).toEqual(attempt.calls.map(({ request }) => request.messages[0]?.content));
    }
  });
});

test.each([
  ['NaN', (context: RolloutContext) => ask(context, 'a').then((turn) => context.rewardTurn(turn, Number.NaN))],
  ['what no model answered', async (context: RolloutContext) => context.rewardTurn({ choices: [{}] }, 1)],
  ['two choices', (context: RolloutContext) => ask(context, 'a', { n: 2 }).then((turn) => context.rewardTurn(turn, 1))],
])('rewardTurn refuses %s, and the attempt has failed', async (_, play) => {
  const attempt = await playOne(engine, async (context) => {
    await play(context);
    return 1;
  });
  expect(attempt).toMatchObject({ status: 'failed', reward: null });
  expect(attempt.failure?.message).toContain('rewardTurn must be given');
});

test('where a judge alone gives the rewards, rewardTurn says that it has no effect', async () => {
  const rollout = async (context: RolloutContext) => context.rewardTurn(await ask(context, 'a'), 1);
  const agent = defineAgent({
    name: 'judged',
    scenarios: [],
    reward: ruler({ judge: { baseUrl: 'http://127.0.0.1:1/v1', model: 'judge' } }),
    rollout,
  });
  const [attempt] = await playAttempts(engine, rollout as never, { agent } as never);
  expect(attempt?.failure?.message).toContain('rewardTurn has no effect when only the judge gives rewards');
});

test('a judge’s verdict weighs what turns earned as it weighs the agent’s reward', () => {
  expect(judgeTurns([[1, 0], [0, 0], []], 0.5)).toEqual({ turnRewards: [[0.5, 0], null, null] });
  expect(judgeTurns([[1, 0]], 0)).toEqual({});
});

test('toolLoop asks what each turn earned, once its calls were run', async () => {
  const acting = await temporaryEngine({
    answer: ({ messages }) =>
      messages.length === 1
        ? {
            content: '',
            toolCalls: [{ id: 'x', type: 'function', function: { name: 'look', arguments: '{}' } }],
          }
        : { content: 'done' },
  });
  const look = tool({ name: 'look', description: 'Looks.', parameters: { type: 'object' }, run: () => 'found' });
  const attempt = await playOne(acting, async (context) => {
    await toolLoop(context, {
      messages: [{ role: 'user', content: 'go' }],
      tools: [look],
      turnReward: ({ turn, calls, choice }) =>
        turn * 10 +
        calls.filter(({ content }) => content === 'found').length +
        Number(choice.message.content === 'done'),
    });
    return 0;
  });
  expect(attempt.calls.map(({ turn, reward }) => [turn, reward])).toEqual([
    [0, 11],
    [1, 21],
  ]);
  expect(attempt.reward).toBe(32);
});
