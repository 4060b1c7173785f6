/** Learns tic-tac-toe from a judge alone: the rollout plays the game and says nothing of what it was worth. */
import { defineAgent, ruler } from 'temper-rl';
import { games, MAX_TOKENS, playGame, type Game } from './game.ts';
import { RUBRIC } from './rubric.ts';

/** The judge beside this file, as `judge.ts` starts it; `--judge openai/gpt-5-mini`, say, takes its place. */
const JUDGE_URL = process.env['TIC_TAC_TOE_JUDGE'] || 'http://127.0.0.1:4711/v1';

export default defineAgent<Game>({
  name: 'tic-tac-toe-ruler',
  scenarios: games(0, 4000),
  // Far from every training seed: what is measured was never trained on.
  evalScenarios: games(1_000_000, 200),
  reward: ruler({
    judge: { baseUrl: JUDGE_URL, model: 'scripted', name: 'tic-tac-toe' },
    rubric: RUBRIC,
  }),

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
