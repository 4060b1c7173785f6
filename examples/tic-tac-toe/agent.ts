/** Learns tic-tac-toe against an opponent that plays at random; the model is x and moves first. */
import { defineAgent } from 'temper-rl';
import { EMPTY_BOARD, freeCells, hasWon, parseMove, place, randomOpponent, renderBoard } from './game.ts';

interface Scenario {
  readonly id: string;
  readonly seed: number;
}

export default defineAgent<Scenario>({
  name: 'tic-tac-toe',
  scenarios: games(0, 4000),
  // Far from every training seed: what is measured was never trained on.
  evalScenarios: games(1_000_000, 200),

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
      if (move === null) return result(-1, moves, { illegal: true });
      board = place(board, move, 'x');
      if (hasWon(board, 'x')) return result(1, moves, { win: true });
      if (freeCells(board).length === 0) return result(0, moves, { draw: true });
      board = place(board, opponent(board), 'o');
      if (hasWon(board, 'o')) return result(-1, moves, {});
    }
  },
});

function games(firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => ({ id: `game-${firstSeed + index}`, seed: firstSeed + index }));
}

/** Every metric on every attempt: a mean needs its zeros. */
function result(reward: number, moves: number, outcome: { win?: true; draw?: true; illegal?: true }) {
  return { reward, metrics: { win: false, draw: false, illegal: false, ...outcome, moves } };
}
