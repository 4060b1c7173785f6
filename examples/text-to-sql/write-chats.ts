/**
 * Writes the examples of the warm start, training questions with their queries, one chat a line:
 * `node --import temper-rl/typescript examples/text-to-sql/write-chats.ts`.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { seededRandom } from 'temper-rl';
import { trainingQuestions } from './guests.ts';
import { shuffle } from './random.ts';

const { values: flags } = parseArgs({
  options: {
    out: { type: 'string', default: 'sql-chats.jsonl' },
    chats: { type: 'string', default: '100' },
  },
});

// The same for the same count. The reward has to teach the questions that are left.
const drawn = shuffle(trainingQuestions, seededRandom('chats')).slice(0, Number(flags.chats));
const lines = drawn.map(({ text, sql }) => {
  const messages = [
    { role: 'user', content: text },
    { role: 'assistant', content: sql },
  ];
  return `${JSON.stringify({ messages })}\n`;
});
writeFileSync(flags.out, lines.join(''));
console.log(`wrote ${flags.out}: ${flags.chats} chats`);
