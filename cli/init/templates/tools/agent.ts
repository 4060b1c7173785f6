/** Learns to look words up with two tools: of several notes about a word, the newest is right, and is found first. */
import { defineAgent, seededRandom, tool, toolLoop } from 'temper-rl';
import { z } from 'zod';
import { makeNotes } from './notes.ts';

export default defineAgent({
  name: 'lookup',
  scenarios: Array.from({ length: 2000 }, (_, seed) => ({ id: `notes-${seed}`, seed })),
  evalScenarios: Array.from({ length: 100 }, (_, index) => ({ id: `exam-${index}`, seed: 1_000_000 + index })),

  async rollout({ scenario, ...context }) {
    const { notes, question, answer } = makeNotes(seededRandom(scenario.seed));
    const search = tool({
      name: 'search',
      description: 'Ids of what has the word.',
      parameters: z.object({ query: z.string() }),
      run: ({ query }) => `[${notes.flatMap(({ id, text }) => (text.split(' ')[0] === query ? [id] : [])).join(', ')}]`,
    });
    const read = tool({
      name: 'read',
      description: 'The text of an id.',
      parameters: z.object({ id: z.number() }),
      run({ id }) {
        const note = notes.find((each) => each.id === id);
        // The model is told, and may do better in its next turn.
        if (note === undefined) throw new Error(`there is no note ${id}`);
        return note.text;
      },
    });
    const played = await toolLoop(context, {
      messages: [{ role: 'user', content: question }],
      tools: [search, read],
      maxTurns: 5,
      maxTokensPerTurn: 64,
    });
    const correct = played.answer?.split(' ')[0] === answer;
    return { reward: correct ? 1 : 0, metrics: { correct, turns: played.turns } };
  },
});
