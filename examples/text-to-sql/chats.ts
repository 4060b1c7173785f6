/** The examples of the warm start: training questions with their queries, one chat a line. */
import { seededRandom } from 'temper-rl';
import { shuffle } from './random.ts';
import { trainingQuestions } from './guests.ts';

/** The same for the same count. The reward has to teach the questions that are left. */
export function makeChats(count: number): string {
  const drawn = shuffle(trainingQuestions, seededRandom('chats')).slice(0, count);
  const lines = drawn.map(({ text, sql }) => {
    const messages = [
      { role: 'user', content: text },
      { role: 'assistant', content: sql },
    ];
    return `${JSON.stringify({ messages })}\n`;
  });
  return lines.join('');
}
