/** A chat completion as a server answers it, with what Temper's engine adds for training. */
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';

export interface Completion {
  /** The agent sees an id made from its call, the same in every repetition. */
  id?: string;
  model?: string;
  adapter_sha256?: string | null;
  prompt_token_ids?: number[];
  choices: Choice[];
  [member: string]: unknown;
}

interface Choice {
  message: ChatMessage;
  finish_reason: string;
  token_ids?: number[];
  logprobs?: { content?: { logprob: number }[] | null } | null;
  /** Tool calls that the GPU worker could not read and left in the text; absent without tools. */
  malformed_tool_calls?: number;
  [member: string]: unknown;
}

/** Null where the text is no chat completion: an engine that is starting, a proxy's page, half an answer. */
export function parseCompletion(text: string): Completion | null {
  try {
    const body = JSON.parse(text) as Partial<Completion> | null;
    return isCompletion(body) ? body : null;
  } catch {
    return null;
  }
}

/** Members that exist have the shape used below; `checkTokens` refuses missing ones. */
function isCompletion(body: Partial<Completion> | null): body is Completion {
  const choices = body?.choices;
  return Array.isArray(choices) && choices.length > 0 && choices.every(isChoice) && isIds(body?.prompt_token_ids);
}

function isChoice(choice: Partial<Choice> | null): boolean {
  const message = choice?.message;
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return false;
  const content = choice?.logprobs?.content ?? [];
  return isIds(choice?.token_ids) && Array.isArray(content) && content.every((token) => typeof token === 'object');
}

function isIds(ids: unknown): boolean {
  return (ids ?? null) === null || (Array.isArray(ids) && ids.every((id) => Number.isSafeInteger(id)));
}
