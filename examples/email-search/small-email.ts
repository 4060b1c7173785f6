/** The same with nine mails of three words, so that a pocket model can do it: with real calls of real tools. */
import { defineAgent, tool } from 'temper-rl';
import { z } from 'zod';
import type { Answer, Edition, Trail } from './grade.ts';
import { openMailboxes } from './mail-index.ts';
import { research } from './research.ts';
import { FIRST_EXAM_SEED, makeSmallMailbox } from './small-mailbox.ts';

interface Scenario {
  readonly id: string;
  readonly seed: number;
}

// It cannot say that it does not know, so a wrong answer is no worse than none.
const EDITION: Edition = { maxTurns: 5, maxTokensPerTurn: 64, wrong: 0 };

const mailboxOf = openMailboxes(makeSmallMailbox, 128);

export default defineAgent<Scenario>({
  name: 'email-search-small',
  scenarios: mailboxes(0, 4000),
  // Of words that are never asked for in the training.
  evalScenarios: mailboxes(FIRST_EXAM_SEED, 200),

  async rollout(context) {
    const { seed } = context.scenario;
    const [question] = mailboxOf(seed).questions;
    return research(context, {
      edition: EDITION,
      messages: [{ role: 'user', content: question!.text }],
      question: question!,
      tools: (trail) => smallTools(seed, trail),
      parse: parseSmallAnswer,
    });
  },
});

function mailboxes(firstSeed: number, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => ({ id: `mailbox-${firstSeed + index}`, seed: firstSeed + index }));
}

/** To the byte what the warm start of `pocket-tools` has: it has never seen other tools. */
function smallTools(seed: number, { found, read }: Trail) {
  const search = tool({
    name: 'search',
    description: 'Ids of what has the word.',
    parameters: z.object({ query: z.string() }),
    run: ({ query }) => {
      const ids = mailboxOf(seed)
        .search({ query })
        .map(({ id }) => id);
      for (const id of ids) found.add(id);
      return `[${ids.join(', ')}]`;
    },
  });
  const readText = tool({
    name: 'read',
    description: 'The text of an id.',
    parameters: z.object({ id: z.number() }),
    run: ({ id }) => {
      const { body } = mailboxOf(seed).read(id);
      read.add(id);
      return body;
    },
  });
  return [search, readText];
}

/** A word, and the id of the mail that tells it: `KEL 4`. */
export function parseSmallAnswer(text: string): Answer | null {
  const [, word, id] = /^([A-Z]+)(?: (\d+))?$/.exec(text) ?? [];
  if (word === undefined) return null;
  return { text: word, sources: id === undefined ? [] : [Number(id)] };
}
