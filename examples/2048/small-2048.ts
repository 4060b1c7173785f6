/** 2048 on nine cells and for twelve moves, in so few bytes that the pocket model can play it. */
import { defineAgent } from 'temper-rl';
import { games, playGame, type Variant, type Scenario } from './play.ts';
import { parseKey, renderSmall } from './text.ts';

const VARIANT: Variant = { size: 3, turns: 12, goal: 16, par: 64 };

export default defineAgent<Scenario>({
  name: '2048-small',
  scenarios: games(0, 4000),
  // Far from every training seed: what is measured was never trained on.
  evalScenarios: games(1_000_000, 200),

  async rollout({ scenario, openai, model }) {
    return playGame(scenario, VARIANT, async (board) => {
      const completion = await openai.chat.completions.create({
        model,
        // The board says all there is to know, so each turn starts afresh.
        messages: [{ role: 'user', content: renderSmall(board) }],
        max_tokens: 2, // a key, and the end of the turn
      });
      return parseKey(completion.choices[0]?.message.content ?? null);
    });
  },
});
