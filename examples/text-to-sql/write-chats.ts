/** Writes the chats of the warm start: `node --import temper-rl/typescript examples/text-to-sql/write-chats.ts`. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { makeChats } from './chats.ts';

const { values: flags } = parseArgs({
  options: {
    out: { type: 'string', default: 'sql-chats.jsonl' },
    chats: { type: 'string', default: '100' },
  },
});

writeFileSync(flags.out, makeChats(Number(flags.chats)));
console.log(`wrote ${flags.out}: ${flags.chats} chats`);
