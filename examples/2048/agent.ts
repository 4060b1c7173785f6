/** 2048 on a full board, in one long conversation, for a larger model. Nobody has trained this agent yet. */
import { defineAgent } from 'temper-rl';
import type OpenAI from 'openai';
import { games, playGame, type Variant, type Scenario } from './play.ts';
import { parseMove, renderBoard, RULES } from './text.ts';

const VARIANT: Variant = { size: 4, turns: 60, goal: 128, par: 640 };

export default defineAgent<Scenario>({
  name: '2048',
  scenarios: games(0, 2000),
  // Far from every training seed: what is measured was never trained on.
  evalScenarios: games(1_000_000, 100),

  async rollout({ scenario, openai, model }) {
    // The conversation only ever grows, so that a whole game is one sequence to the trainer.
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: 'system', content: RULES }];
    return playGame(scenario, VARIANT, async (board) => {
      messages.push({ role: 'user', content: renderBoard(board) });
      const completion = await openai.chat.completions.create({ model, messages, max_tokens: 8 });
      const answer = completion.choices[0]?.message.content ?? '';
      messages.push({ role: 'assistant', content: answer });
      return parseMove(answer);
    });
  },
});
