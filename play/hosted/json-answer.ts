/** JSON that a model is asked for: how its answer is read, and how it is asked again. */

/** Some models think aloud first, and some fence what they answer. */
const THOUGHT = /^\s*<think>[\s\S]*?<\/think>/;
const FENCED = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/;

/** Undefined where the text is anything but JSON. */
export function parseJsonAnswer(text: string): unknown {
  const said = text.replace(THOUGHT, '').trim();
  try {
    return JSON.parse(FENCED.exec(said)?.[1] ?? said) as unknown;
  } catch {
    return undefined;
  }
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
