/** What other formats than chat completions take out of an answer; they have one choice. */
import type { Completion } from '../recorder/answer.ts';

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

/** 0 where the engine did not count. */
export function tokensOf({ usage }: Completion): { promptTokens: number; completionTokens: number } {
  const { prompt_tokens = 0, completion_tokens = 0 } = (usage ?? {}) as Record<string, number>;
  return { promptTokens: prompt_tokens, completionTokens: completion_tokens };
}
