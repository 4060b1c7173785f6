/** Writes the notes beside this file: `node --import temper-rl/typescript examples/mcp/write-notes.ts`. */
import { join } from 'node:path';
import { words, writeNotes } from './notes.ts';

const folder = join(import.meta.dirname, 'notes');
writeNotes(folder);
console.log(`wrote notes on ${words.length} words into ${folder}`);
