/** Parts of an answer for formats other than chat completions, which have one choice. */
import type { Completion } from '../connections/completion.ts';

export interface AnsweredCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Without what stands before it in chat completions. */
export function idOf({ id = '' }: Completion): string {
  return id.replace(/^chatcmpl-/, '');
}

/** Empty where the model only called tools. */
export function contentOf({ choices }: Completion): string {
  const content = choices[0]?.message.content;
  return typeof content === 'string' ? content : '';
}

export function callsOf({ choices }: Completion): AnsweredCall[] {
  return (choices[0]?.message.tool_calls ?? []) as AnsweredCall[];
}

/** Empty where the model did not think. */
export function thoughtsOf({ choices }: Completion): string {
  const thoughts = choices[0]?.message['reasoning_content'];
  return typeof thoughts === 'string' ? thoughts : '';
}

/** Log-probabilities of the text, without thoughts, calls and the end token. Empty if they were not requested. */
export function textLogprobsOf(completion: Completion): readonly object[] {
  const tokens = completion.choices[0]?.logprobs?.content ?? [];
  const [thoughts, text] = [thoughtsOf(completion), contentOf(completion)];
  if (text === '') return [];
  const told = tokens.map((each) => String((each as { token?: unknown }).token));
  const sampled = told.join('');
  const begin = sampled.indexOf(text, Math.max(0, sampled.indexOf(thoughts)) + thoughts.length);
  // Tokens that are parts of a character do not spell the text: it is not known which of them are its own.
  if (begin < 0) return tokens;
  let read = 0;
  return tokens.filter((_, index) => {
    const from = read;
    read += told[index]!.length;
    return read > begin && from < begin + text.length;
  });
}

interface Usage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number };
}

/** 0 where the engine did not count. */
export function tokensOf({ usage }: Completion): {
  promptTokens: number;
  completionTokens: number;
  thoughtTokens: number;
} {
  const { prompt_tokens = 0, completion_tokens = 0, completion_tokens_details: details } = (usage ?? {}) as Usage;
  const thoughtTokens = details?.reasoning_tokens ?? 0;
  return { promptTokens: prompt_tokens, completionTokens: completion_tokens, thoughtTokens };
}
