/** Codenames with 25 words, for a larger model: two policies that win or lose together. Nobody has trained this agent yet. */
import { defineAgent, policy, type ModelClient } from 'temper-rl';
import { makeBoard } from './boards.ts';
import { playGame } from './play.ts';
import { parseClue, parseGuess, renderForGuesser, renderForSpymaster } from './text.ts';
import { HELD_OUT_WORDS, TRAINING_WORDS } from './words.ts';

interface Scenario {
  readonly id: string;
  readonly seed: number;
  readonly isHeldOut: boolean;
}

/** Nine words in five turns: a clue for one word at a time is not enough. */
const MAX_TURNS = 5;

export default defineAgent({
  name: 'codenames',
  scenarios: games(2000, false),
  evalScenarios: games(100, true),

  roles: { spymaster: policy(), guesser: policy('guesser') },

  async rollout({ scenario: { seed, isHeldOut }, roles: { spymaster, guesser } }) {
    return playGame(makeBoard(isHeldOut ? HELD_OUT_WORDS : TRAINING_WORDS, seed), MAX_TURNS, {
      giveClue: async (board, turnsLeft) => parseClue(await ask(spymaster, renderForSpymaster(board, turnsLeft))),
      nameWord: async (board, clue, guess) => parseGuess(await ask(guesser, renderForGuesser(board, clue, guess))),
    });
  },
});

function games(count: number, isHeldOut: boolean): Scenario[] {
  return Array.from({ length: count }, (_, seed) => ({
    id: `${isHeldOut ? 'exam' : 'game'}-${seed}`,
    seed,
    isHeldOut,
  }));
}

async function ask({ openai, model }: ModelClient, content: string): Promise<string | null> {
  const completion = await openai.chat.completions.create({
    model,
    // The prompt says all there is to know, so each answer starts afresh.
    messages: [{ role: 'user', content }],
    max_tokens: 512, // it may think before its last line
  });
  return completion.choices[0]?.message.content ?? null;
}
