/** Learns tic-tac-toe from a judge alone: the rollout plays the game and says nothing of its reward. */
import { defineAgent, ruler } from 'temper-rl';
import { games, MAX_TOKENS, playGame, type Game } from './game.ts';

/** Everything that a judge has to know: the game, and how its turns appear in an attempt. */
const RUBRIC = `The agent plays tic-tac-toe as x and moves first, against an opponent o. Each conversation is one turn of the same game: the board before the move, nine characters row by row, in which a free cell shows its own number from 1 to 9, and the answer, which must be the number of a free cell and nothing else. The turns of an attempt stand in the order of play. A game ends with a line of three, a full board or an illegal answer; the opponent's last move is not shown.
- An answer to the last board that completes a line of three x has won: 1.
- An answer to the last board that fills the board without such a line is a draw: 0.5.
- An answer to the last board that leaves free cells and no line has lost, for the opponent completed a line after it: 0.
- An answer to the last board that is not the number of a free cell is illegal: 0.
- Games that ended alike are worth the same, however many turns they took. Say what was overlooked on the way: a winning cell, or a cell for the opponent to win on.`;

export default defineAgent<Game>({
  name: 'tic-tac-toe-ruler',
  scenarios: games(0, 4000),
  // Far from every training seed: what is measured was never trained on.
  evalScenarios: games(1_000_000, 200),
  reward: ruler({ judge: 'openai/gpt-5-mini', rubric: RUBRIC }),

  async rollout({ scenario, openai, model }) {
    const { metrics } = await playGame(scenario, async (board) => {
      const messages = [{ role: 'user' as const, content: board }];
      const completion = await openai.chat.completions.create({ model, messages, max_tokens: MAX_TOKENS });
      return completion.choices[0]?.message.content ?? null;
    });
    // For people and their curves; a judge is shown none of it.
    return { metrics };
  },
});
