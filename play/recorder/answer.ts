/** An engine's answer: checked against the policy, taken apart for the trajectory, and cut to the part that an agent sees. */
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { CallRecord, ChatMessage } from '../../store/records/groups/trajectories.ts';
import type { Completion } from '../connections/completion.ts';

export type CallFrame = Pick<CallRecord, 'key' | 'occurrence' | 'label' | 'role' | 'request'>;

export interface ExpectedPolicy {
  model: string;
  adapterSha256: string | null;
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
