/** Learns to answer questions about a mailbox: search, read, answer, and cite the mail that tells it. */
import { defineAgent, tool, toolLoop } from 'temper-rl';
import { z } from 'zod';
import { grade, MAX_TOKENS_PER_TURN, MAX_TURNS, type Seen } from './grade.ts';
import { examScenarios, makeMailbox, scenarios, type Scenario } from './mailbox.ts';
import { MailSearch } from './search.ts';

export default defineAgent<Scenario>({
  name: 'email-search-small',
  scenarios,
  evalScenarios: examScenarios,

  async rollout(context) {
    const { mails, question } = makeMailbox(context.scenario.seed);
    const seen: Seen = { found: new Set(), read: new Set() };
    const mailSearch = new MailSearch(mails);
    try {
      const { answer, turns } = await toolLoop(context, {
        messages: [{ role: 'user', content: question.text }],
        tools: mailTools(mailSearch, seen),
        maxTurns: MAX_TURNS,
        maxTokensPerTurn: MAX_TOKENS_PER_TURN,
      });
      return grade(answer, seen, turns, question);
    } finally {
      mailSearch.close();
    }
  },
});

/** To the byte what the warm start of `pocket-tools` has: it has never seen other tools. */
function mailTools(mailSearch: MailSearch, { found, read }: Seen) {
  return [
    tool({
      name: 'search',
      description: 'Ids of what has the word.',
      parameters: z.object({ query: z.string() }),
      run: ({ query }) => {
        const ids = mailSearch.search(query);
        for (const id of ids) found.add(id);
        return `[${ids.join(', ')}]`;
      },
    }),
    tool({
      name: 'read',
      description: 'The text of an id.',
      parameters: z.object({ id: z.number() }),
      run: ({ id }) => {
        const body = mailSearch.read(id);
        read.add(id);
        return body;
      },
    }),
  ];
}
