/** Learns tic-tac-toe from a judge alone: the rollout plays the game and says nothing of what it was worth. */
import { defineAgent, ruler } from 'temper-rl';
import { EMPTY_BOARD, freeCells, hasWon, parseMove, place, randomOpponent, renderBoard } from '../tic-tac-toe/game.ts';
import { RUBRIC } from './rubric.ts';

interface Scenario {
  readonly id: string;
  readonly seed: number;
}

/** The judge beside this file, as `judge.ts` starts it; `--judge openai/gpt-5-mini`, say, takes its place. */
const JUDGE_URL = process.env['TIC_TAC_TOE_JUDGE'] || 'http://127.0.0.1:4711/v1';

export default defineAgent<Scenario>({
  name: 'tic-tac-toe-ruler',
  scenarios: games(0, 4000),
  // Far from every training seed: what is measured was never trained on.
  evalScenarios: games(1_000_000, 200),
  reward: ruler({
    judge: { baseUrl: JUDGE_URL, model: 'scripted', name: 'tic-tac-toe' },
    rubric: RUBRIC,
  }),

  async rollout({ scenario, openai, model }) {
    const opponent = randomOpponent(scenario.seed);
    let board = EMPTY_BOARD;
    for (let moves = 1; ; moves++) {
      const completion = await openai.chat.completions.create({
        model,
        // The board says all there is to know, so each turn starts afresh.
        messages: [{ role: 'user', content: renderBoard(board) }],
        max_tokens: 2, // a digit, and the end of the turn
      });
      const move = parseMove(completion.choices[0]?.message.content ?? null, board);
      if (move === null) return told(moves, { illegal: true });
      board = place(board, move, 'x');
      if (hasWon(board, 'x')) return told(moves, { win: true });
      if (freeCells(board).length === 0) return told(moves, { draw: true });
      board = place(board, opponent(board), 'o');
      if (hasWon(board, 'o')) return told(moves, {});
    }
  },
});

function games(firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => ({ id: `game-${firstSeed + index}`, seed: firstSeed + index }));
}

/** For people and their curves; a judge is shown none of it. Every metric on every attempt: a mean needs its zeros. */
function told(moves: number, outcome: { win?: true; draw?: true; illegal?: true }) {
  return { metrics: { win: false, draw: false, illegal: false, ...outcome, moves } };
}
