/**
 * Tic-tac-toe for a model of random weights: a move that is none is played on a free cell all the same. Otherwise every
 * game would end at its first move with the same reward, and a step would have nothing to train.
 */
import { defineAgent } from 'temper-rl';

import ticTacToe from '../examples/tic-tac-toe/agent.ts';
import { EMPTY_BOARD, freeCells, hasWon, place, randomOpponent, renderBoard } from '../examples/tic-tac-toe/game.ts';

export default defineAgent({
  name: 'bench-forgiving',
  scenarios: ticTacToe.scenarios,

  async rollout({ scenario, openai, model }) {
    const opponent = randomOpponent(scenario.seed);
    let board = EMPTY_BOARD;
    for (;;) {
      const messages = [{ role: 'user' as const, content: renderBoard(board) }];
      const completion = await openai.chat.completions.create({ model, messages, max_tokens: 2 });
      board = place(board, forgivingMove(completion.choices[0]?.message.content ?? '', board), 'x');
      if (hasWon(board, 'x')) return 1;
      if (freeCells(board).length === 0) return 0;
      board = place(board, opponent(board), 'o');
      if (hasWon(board, 'o')) return -1;
    }
  },
});

/** Any text names a cell, as in `bare_loop.py --forgiving`. */
function forgivingMove(answer: string, board: string): number {
  const free = freeCells(board);
  const sum = Array.from(answer).reduce((total, character) => total + (character.codePointAt(0) ?? 0), 0);
  return free[sum % free.length]!;
}
