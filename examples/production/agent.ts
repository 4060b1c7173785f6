/** Learns tic-tac-toe against an opponent that plays at random. Users rate it, so a schedule trains on what they said. */
import { defineAgent } from 'temper-rl';
import { games, MAX_TOKENS, playGame, type Game } from './game.ts';

export default defineAgent<Game>({
  name: 'tic-tac-toe',
  scenarios: games(0, 4000),
  // Far from every training seed: what is measured was never trained on.
  evalScenarios: games(1_000_000, 200),

  rollout: ({ scenario, openai, model }) =>
    playGame(scenario, async (board) => {
      const messages = [{ role: 'user' as const, content: board }];
      const completion = await openai.chat.completions.create({ model, messages, max_tokens: MAX_TOKENS });
      return completion.choices[0]?.message.content ?? null;
    }),
});
