/** One game: the model is x and moves first. The rules are those of examples/tic-tac-toe. */
import { Trajectory, type Model } from 'temper-rl';
import { EMPTY_BOARD, freeCells, hasWon, parseMove, place, randomOpponent, renderBoard } from '../tic-tac-toe/game.ts';

export interface Game {
  readonly id: string;
  readonly seed: number;
}

export async function playGame(model: Model, { seed }: Game): Promise<Trajectory> {
  const openai = model.openai();
  const opponent = randomOpponent(seed);
  const trajectory = new Trajectory({ messagesAndChoices: [], reward: 0 });
  let board = EMPTY_BOARD;
  for (let moves = 1; ; moves++) {
    // The board says all there is to know, so each turn starts afresh: a history of its own.
    const messages = [{ role: 'user' as const, content: renderBoard(board) }];
    const completion = await openai.chat.completions.create({ model: model.name, messages, max_tokens: 2 });
    const choice = completion.choices[0]!;
    const history = { messagesAndChoices: [...messages, choice], tools: null };
    if (moves === 1) trajectory.messagesAndChoices = history.messagesAndChoices;
    else trajectory.additionalHistories.push(history);

    const move = parseMove(choice.message.content, board);
    if (move === null) return end(trajectory, -1, moves, { illegal: true });
    board = place(board, move, 'x');
    if (hasWon(board, 'x')) return end(trajectory, 1, moves, { win: true });
    if (freeCells(board).length === 0) return end(trajectory, 0, moves, { draw: true });
    board = place(board, opponent(board), 'o');
    if (hasWon(board, 'o')) return end(trajectory, -1, moves, {});
  }
}

/** Every metric on every attempt: a mean needs its zeros. */
function end(
  trajectory: Trajectory,
  reward: number,
  moves: number,
  outcome: { win?: true; draw?: true; illegal?: true },
): Trajectory {
  trajectory.reward = reward;
  trajectory.metrics = { win: false, draw: false, illegal: false, ...outcome, moves };
  return trajectory;
}
