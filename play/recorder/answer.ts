/** An engine's answer: checked, taken apart for the trajectory, and cut to the part that an agent sees. */
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { CallRecord, ChatMessage } from '../../store/records/groups/trajectories.ts';

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

export type CallFrame = Pick<CallRecord, 'key' | 'occurrence' | 'label' | 'role' | 'request'>;

export interface ExpectedPolicy {
  model: string;
  adapterSha256: string | null;
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

/** Promise 4: what answered must be the policy that the plan named. */
export function checkPolicy(completion: Completion, { model, adapterSha256 }: ExpectedPolicy): void {
  const found = completion.adapter_sha256;
  if (found === adapterSha256) return;
  const shown = found === undefined ? 'no adapter_sha256' : String(found);
  const rule = `${model} must be answered by the adapter ${String(adapterSha256)}, the engine answered with ${shown}`;
  throw new TemperError('PolicyMismatch', `${rule}; restart the engine, and check that it reads this run's store`);
}

/** One record for each choice; the arrays are the record's own from here on. */
export function takeRecords(completion: Completion, frame: CallFrame): CallRecord[] {
  return completion.choices.map((choice) => ({
    ...frame,
    message: cloneMessage(choice.message),
    finishReason: choice.finish_reason,
    promptTokenIds: completion.prompt_token_ids ?? [],
    tokenIds: choice.token_ids ?? [],
    logprobs: (choice.logprobs?.content ?? []).map(({ logprob }) => logprob),
    adapterSha256: completion.adapter_sha256 ?? null,
  }));
}

/** Training needs ids and log-probabilities of every token: an engine without them can't be trained with. */
export function checkTokens(records: readonly CallRecord[], engineUrl: string): void {
  for (const { promptTokenIds, tokenIds, logprobs } of records) {
    if (promptTokenIds.length > 0 && tokenIds.length === logprobs.length && logprobs.every(Number.isFinite)) continue;
    const found = `${promptTokenIds.length} prompt ids, ${tokenIds.length} sampled ids, ${logprobs.length} log-probabilities`;
    const rule = 'must answer return_token_ids and logprobs with ids and one finite log-probability for each';
    throw badConfig(
      `the engine at ${engineUrl} ${rule}, got ${found}; use Temper's GPU worker or a vLLM that has them`,
    );
  }
}

/** The answer as an agent sees it: without what only the trainer needs, so that nobody changes it by accident. */
export function forAgent(completion: Completion, keepLogprobs: boolean): Completion {
  const { prompt_token_ids: _ids, ...visible } = completion;
  const choices = completion.choices.map(({ token_ids: _tokens, logprobs, ...choice }) =>
    keepLogprobs ? { ...choice, logprobs: logprobs ?? null } : { ...choice, logprobs: null },
  );
  return { ...visible, choices };
}

/** Under this name a choice says which call it answers, and the how-manieth of its choices it is: `<key>/<occurrence>/<index>`. */
export const CHOICE_TAG = 'temper_call';

export function tagChoices(completion: Completion, call: string): Completion {
  const choices = completion.choices.map((choice, index) => ({ ...choice, [CHOICE_TAG]: `${call}/${index}` }));
  return { ...completion, choices };
}

function cloneMessage(message: ChatMessage): ChatMessage {
  return message.tool_calls === undefined ? { ...message } : structuredClone<ChatMessage>(message);
}
