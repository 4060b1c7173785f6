/** The script of the example `mcp`: questions about its notes, and the calls of server-filesystem that find the answers. */
import type { Script, ScriptedTask } from './hosted-model.ts';
import { notesOn, words } from '../../../examples/mcp/notes.ts';

function toTask(about: string): ScriptedTask {
  const [{ number, word }] = notesOn(about) as [{ number: number; word: string }];
  return {
    task: `What is ${about}?`,
    // Two calls, the second of which depends on the first.
    difficulty: 2,
    calls: [
      { name: 'list_directory', arguments: { path: about } },
      { name: 'read_text_file', arguments: { path: `${about}/${number}.txt` } },
    ],
    answer: `${word} ${number}`,
  };
}

export const SCRIPT: Script = {
  tasks: words.map(toTask),
  systemPrompt: 'Answer from the newest note: its word and its number.',
  rubric: `- The word and the number of the newest note, and nothing else, is best.
- Any other answer is bad.`,
};
