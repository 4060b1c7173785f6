/** The agents of the examples, played over HTTP by an engine that knows what it is asked. */
import { expect, onTestFinished, test } from 'vitest';
import clue from '../../examples/temporal-clue/agent.ts';
import { FULL } from '../../examples/temporal-clue/edition.ts';
import { makePuzzle } from '../../examples/temporal-clue/puzzle.ts';
import { examPuzzles } from '../../examples/temporal-clue/small-puzzles.ts';
import smallClue from '../../examples/temporal-clue/small-clue.ts';
import { sayAnswer } from '../../examples/temporal-clue/text.ts';
import game from '../../examples/2048/agent.ts';
import { legalMoves } from '../../examples/2048/game.ts';
import smallGame from '../../examples/2048/small-2048.ts';
import type { JudgedResult, RolloutContext, RolloutResult, Scenario } from '../../play/agent.ts';
import { startFakeEngine } from '../fake-engine.ts';
import { playOne } from '../play/play.ts';

interface Playable<S extends Scenario> {
  rollout(context: RolloutContext<S>): JudgedResult | Promise<JudgedResult>;
}

/** The model's answer follows from the last message. */
async function play<S extends Scenario>(agent: Playable<S>, scenario: S, answer: (question: string) => string) {
  const engine = await startFakeEngine({ answer: ({ messages }) => answer(messages.at(-1)?.content ?? '') });
  onTestFinished(() => engine.close());
  const rollout = { maxCallsPerAttempt: 64, attemptTimeoutMs: 60_000 };
  const attempt = await playOne(
    engine,
    (context) => agent.rollout(context as RolloutContext<S>) as Promise<RolloutResult>,
    {
      scenario,
      rollout,
    },
  );
  expect(attempt.failure).toBeNull();
  const asked = engine.executed.map(({ request }) => request.messages);
  return { ...attempt, asked };
}

function firstLegal(boardInWords: string): string {
  const tiles = boardInWords.trim().split(/\s+/);
  return legalMoves(tiles.map((tile) => (tile === '.' ? 0 : Math.log2(Number(tile)))))[0]?.[0] ?? '';
}

test('2048 is one conversation that only ever grows, within the calls that an attempt may make', async () => {
  const { reward, metrics, asked } = await play(game, { id: 'game-1', seed: 1 }, firstLegal);
  expect(metrics).toMatchObject({ illegal: false, moves: asked.length });
  expect(asked.length).toBeGreaterThan(30);
  expect(reward).toBeGreaterThan(0.3);
  for (const [turn, messages] of asked.slice(1).entries()) {
    const before = asked[turn]!;
    expect(messages.slice(0, before.length)).toEqual(before);
    expect(messages).toHaveLength(before.length + 2);
  }
});

test('a game of 2048 ends with an answer that is no move', async () => {
  const { metrics, asked } = await play(game, { id: 'game-1', seed: 1 }, () => 'I would go left, I think');
  expect(metrics).toMatchObject({ illegal: true, moves: 0 });
  expect(asked).toHaveLength(1);
});

test('the small 2048 is played by the keys that its board shows', async () => {
  const pressFirst = (board: string) => /[2468]/.exec(board.slice(9))?.[0] ?? '';
  const { metrics, asked } = await play(smallGame, { id: 'game-1', seed: 1 }, pressFirst);
  expect(metrics).toMatchObject({ illegal: false, moves: 12 });
  expect(asked.every((messages) => messages.length === 1 && messages[0]!.content!.length === 18)).toBe(true);
});

test('a puzzle is solved by its answer, and partly by a part of it', async () => {
  const { answer } = makePuzzle(FULL, 11);
  const solved = await play(clue, { id: 'puzzle-11', seed: 11 }, () => `I see.\n${sayAnswer(answer)}`);
  expect(solved).toMatchObject({ reward: 1, metrics: { solved: true } });
  const wrongHour = sayAnswer({ ...answer, hour: (answer.hour + 1) % 3 });
  const half = await play(clue, { id: 'puzzle-11', seed: 11 }, () => wrongHour);
  expect(half).toMatchObject({ reward: 0.75, metrics: { solved: false } });
});

test('a small puzzle is worth its answer alone', async () => {
  const [scenario] = examPuzzles(1);
  const right = String(scenario!.answer.who + 1);
  expect(await play(smallClue, scenario!, () => right)).toMatchObject({ reward: 1, metrics: { correct: true } });
  const wrong = right === '1' ? '2' : '1';
  expect(await play(smallClue, scenario!, () => wrong)).toMatchObject({ reward: 0, metrics: { correct: false } });
});
