/** The small edition, with the spymaster's clues or, for comparison, with random ones. */
import { defineAgent, policy, seededRandom, type ModelClient } from 'temper-rl';
import type { Clue } from './game.ts';
import { playGame } from './play.ts';
import {
  heldOutBoards,
  parseSmallClue,
  repeatBoards,
  SMALL_CLUES,
  smallBoard,
  trainingBoards,
  type SmallScenario,
} from './small-boards.ts';
import { renderForGuesser, renderForSpymaster } from './small-text.ts';

const MAX_TURNS = 2;

export function smallAgent({ name, hearsClues }: { name: string; hearsClues: boolean }) {
  return defineAgent({
    name,
    scenarios: () => repeatBoards(trainingBoards, 4000),
    evalScenarios: () => repeatBoards(heldOutBoards, 200),

    roles: { spymaster: policy(), guesser: policy('guesser') },

    async rollout({ scenario, roles: { spymaster, guesser } }) {
      const hear = hearsClues ? (clue: Clue) => clue : randomClues(scenario);
      return playGame(smallBoard(scenario), MAX_TURNS, {
        giveClue: async (board) => parseSmallClue(await ask(spymaster, renderForSpymaster(board))),
        nameWord: (board, clue) => ask(guesser, renderForGuesser(board, hear(clue))),
      });
    },
  });
}

function randomClues({ id }: SmallScenario): (clue: Clue) => Clue {
  const random = seededRandom('clues', id);
  return (clue) => ({ ...clue, word: SMALL_CLUES[Math.floor(random() * SMALL_CLUES.length)]! });
}

async function ask({ openai, model }: ModelClient, content: string): Promise<string | null> {
  const completion = await openai.chat.completions.create({
    model,
    messages: [{ role: 'user', content }],
    max_tokens: 2, // a digit, and the end of the turn
  });
  return completion.choices[0]?.message.content ?? null;
}
