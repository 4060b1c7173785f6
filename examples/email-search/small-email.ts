/** The same with nine mails of three words, so that a pocket model can do it: with real calls of real tools. */
import { defineAgent, tool, toolLoop } from 'temper-rl';
import { z } from 'zod';
import { grade, type Trail } from './grade.ts';
import { EDITION, examScenarios, parseSmallAnswer, scenarios, type Scenario } from './lookup.ts';
import { openMailboxes } from './mail-index.ts';
import { makeSmallMailbox } from './small-mailbox.ts';

const mailboxOf = openMailboxes(makeSmallMailbox, 128);

export default defineAgent<Scenario>({
  name: 'email-search-small',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const { seed } = context.scenario;
    const question = mailboxOf(seed).questions[0]!;
    const trail: Trail = { found: new Set(), read: new Set() };
    const played = await toolLoop(context, {
      messages: [{ role: 'user', content: question.text }],
      tools: smallTools(seed, trail),
      maxTurns: EDITION.maxTurns,
      maxTokensPerTurn: EDITION.maxTokensPerTurn,
    });
    const answer = played.answer === null ? null : parseSmallAnswer(played.answer);
    return grade({ answer, trail, turns: played.turns }, question, EDITION);
  },
});

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
