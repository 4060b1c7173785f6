/** JSON that a model is asked for: how its answer is read, and how it is asked again. */
import { parseJson } from '../../core/json-text.ts';

/** Some models think aloud first, and some fence what they answer. */
const THOUGHT = /^\s*<think>[\s\S]*?<\/think>/;
const FENCE = '```';

/** Undefined where the text is anything but JSON. */
export function parseJsonAnswer(text: string): unknown {
  const said = text.replace(THOUGHT, '').trim();
  return parseJson(withoutFence(said));
}

function withoutFence(said: string): string {
  const [opening = '', ...lines] = said.endsWith(FENCE) ? said.slice(0, -FENCE.length).split('\n') : [];
  return lines.length > 0 && [FENCE, `${FENCE}json`].includes(opening.trimEnd()) ? lines.join('\n') : said;
}

interface Message {
  readonly role: 'system' | 'user';
  readonly content: string;
}

/** The complaint quotes nothing of the answer. */
export function withComplaint<M>(messages: readonly M[], complaint: string | null): readonly (M | Message)[] {
  if (complaint === null) return messages;
  const again = `An earlier answer to this could not be used: ${complaint}. Answer again, exactly in the form asked for.`;
  return [...messages, { role: 'user', content: again }];
}
