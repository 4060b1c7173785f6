/** Records served answers before their clients get them. A failure to record is told, and never fails a request. */
import { callKey, samplesAsTraining, type AskedRollout } from '../../../play/recorder/request.ts';
import type { Completion } from '../../../play/connections/completion.ts';
import { checkTokens, forAgent, takeRecords } from '../../../play/recorder/answer.ts';
import type { RecordedAnswers } from '../../../store/records/production/recorded-answers.ts';
import { firstAnswerOf } from '../../../store/records/production/recording-ids.ts';
import type { NewRecording, RecordingWriter } from '../../../store/records/production/recordings.ts';
import type { RedactConversation, ServedConversation } from '../../../store/records/groups/served-conversation.ts';
import type { CallRecord, CallRequest, ChatMessage } from '../../../store/records/groups/trajectories.ts';
import type { FoundConversation, Conversations } from './conversations.ts';
import { badParameter, type AskedRequest } from '../../../play/recorder/canonical.ts';
import { z } from 'zod';
import { firstIssue } from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { canonicalJson } from '../../../core/text/hashes.ts';

/** A client's own name for a conversation, in all APIs. The answer has the name that it is recorded under. */
export const CONVERSATION_HEADER = 'x-temper-conversation';
/** The same in `metadata`. */
const CONVERSATION_METADATA = 'conversation_id';
/** OpenAI's limit for a value of `metadata`. */
const MOST_NAME_CHARACTERS = 512;

const WARN_AGAIN_MS = 3_600_000;

export interface AnswerRecorderOptions {
  readonly writer: RecordingWriter;
  readonly answers: RecordedAnswers;
  readonly conversations: Conversations;
  readonly redact: RedactConversation | null;
  /** Once for each kind of failure, and again if there was none for an hour. */
  readonly warn: (line: string) => void;
}

export interface ServedCall {
  readonly api: string;
  /** Value of the conversation's header; null without. */
  readonly named: string | null;
  /** The client's request, in the terms of chat completions. */
  readonly asked: AskedRequest;
  readonly request: CallRequest;
  readonly wantsLogprobs: boolean;
  readonly policy: string;
  readonly rollout: AskedRollout;
  readonly engineUrl: string;
}

export class AnswerRecorder {
  readonly #options: AnswerRecorderOptions;
  readonly #warned = new Set<string>();
  #failedAt = -Infinity;

  constructor(options: AnswerRecorderOptions) {
    this.#options = options;
  }

  /** Null if this answer is not to be recorded. Refuses a name that is none. */
  begin(call: ServedCall): BegunRecording | null {
    const named = nameOf(call);
    if (call.asked['store'] === false || (call.request.n ?? 1) !== 1) return null;
    const conversation = this.#options.conversations.find(named, call.request.messages);
    return new BegunRecording(call, conversation, this);
  }

  /** The conversation's name, and the answer's id; null if nothing was recorded. */
  async record(call: CallRecord, served: ServedCall, conversation: FoundConversation): Promise<string | null> {
    const { writer, answers } = this.#options;
    try {
      const recorded = await this.#redacted(call, served, conversation);
      if (recorded === null) return null;
      const recording = await writer.append(recorded);
      conversation.name ??= recording.conversation;
      answers.add(recording);
      if (performance.now() - this.#failedAt > WARN_AGAIN_MS) this.#warned.clear();
      return recording.id;
    } catch (error) {
      this.#warn(error instanceof Error ? error.message : String(error));
      return null;
    }
  }

  keep({ request }: ServedCall, conversation: FoundConversation, { message }: CallRecord): void {
    this.#options.conversations.keep(conversation, request.messages, message);
  }

  async #redacted(
    call: CallRecord,
    { api, policy, request, rollout, engineUrl }: ServedCall,
    { name: conversation }: FoundConversation,
  ): Promise<NewRecording | null> {
    const { redact } = this.#options;
    checkTokens([call], engineUrl);
    const untrainable = samplesAsTraining(request, rollout) ? null : 'parameters';
    if (redact === null) return { conversation, api, policy, untrainable, call };
    const redacted = await redactCall(redact, call, { conversation, policy });
    if (redacted === null) return null;
    return {
      conversation,
      api,
      policy,
      untrainable: redacted.isChanged ? 'redacted' : untrainable,
      call: redacted.call,
    };
  }

  #warn(reason: string): void {
    this.#failedAt = performance.now();
    if (this.#warned.has(reason)) return;
    this.#warned.add(reason);
    this.#options.warn(`an answer was not recorded: ${reason}`);
  }
}

export class BegunRecording {
  readonly #call: ServedCall;
  readonly #conversation: FoundConversation;
  readonly #recorder: AnswerRecorder;

  constructor(call: ServedCall, conversation: FoundConversation, recorder: AnswerRecorder) {
    this.#call = call;
    this.#conversation = conversation;
    this.#recorder = recorder;
  }

  /** Name that Temper gave it; null while it has none, or its client's own one. */
  get conversation(): string | null {
    const { name, isRecorded } = this.#conversation;
    return isRecorded && name !== null && firstAnswerOf(name) !== null ? name : null;
  }

  /** Added to what the engine is asked. */
  get parameters(): object {
    return this.#conversation.isRecorded ? { logprobs: true, return_token_ids: true } : {};
  }

  /** Resolves to the answer as the client may see it, under the id of its recording. */
  async answer(completion: Completion): Promise<Completion> {
    const { request, wantsLogprobs } = this.#call;
    const frame = { key: callKey(request, null), occurrence: 0, label: null, request };
    const [record] = takeRecords(completion, frame);
    this.#recorder.keep(this.#call, this.#conversation, record!);
    if (!this.#conversation.isRecorded) return completion;
    const id = await this.#recorder.record(record!, this.#call, this.#conversation);
    const shown = request['return_token_ids'] === true ? completion : forAgent(completion, wantsLogprobs);
    return id === null ? shown : { ...shown, id: `chatcmpl-${id}` };
  }
}

/** Null where its client has none. */
function nameOf({ named, asked }: ServedCall): string | null {
  const { [CONVERSATION_METADATA]: inMetadata } = (asked['metadata'] ?? {}) as Record<string, unknown>;
  const name = named ?? (typeof inMetadata === 'string' ? inMetadata : null);
  if (name === null || (name.length > 0 && name.length <= MOST_NAME_CHARACTERS)) return name;
  throw badParameter(
    'the name of a conversation',
    name,
    `must have 1 to ${MOST_NAME_CHARACTERS} characters`,
    `change ${CONVERSATION_HEADER} or metadata.${CONVERSATION_METADATA}`,
  );
}

const RedactedSchema = z
  .looseObject({
    messages: z.array(z.looseObject({ role: z.string() })).min(2, 'must have the question and the answer'),
    tools: z.array(z.unknown()).optional(),
  })
  .nullable();

/** Applies the user's redaction. Token ids would still tell what was redacted: then none are kept. */
interface Redacted {
  call: CallRecord;
  isChanged: boolean;
}

type Place = Pick<ServedConversation, 'conversation' | 'policy'>;

/** Null: nothing of it is to be kept. */
async function redactCall(redact: RedactConversation, call: CallRecord, place: Place): Promise<Redacted | null> {
  const { request, message } = call;
  const shown = { messages: [...request.messages, message], tools: request.tools ?? [] };
  const given = structuredClone(shown);
  const parsed = RedactedSchema.safeParse(await redact({ ...place, ...given }));
  if (!parsed.success)
    throw badConfig(
      `a redaction must return { messages } with the answer as the last one, or null (${firstIssue(parsed.error)}); correct the file of --redact`,
    );
  if (parsed.data === null) return null;
  const { messages, tools = given.tools } = parsed.data;
  const kept = withText(call, messages, tools);
  if (canonicalJson({ messages, tools }) !== canonicalJson(shown)) return { call: kept, isChanged: true };
  const { promptTokenIds, tokenIds, logprobs } = call;
  return { call: { ...kept, promptTokenIds, tokenIds, logprobs }, isChanged: false };
}

/** The function does not see other parameters, which may hold text, too, such as a schema or stop strings: none is kept. */
function withText(call: CallRecord, messages: readonly ChatMessage[], tools: unknown[]): CallRecord {
  const { temperature, max_tokens: tokens } = call.request;
  const request: CallRequest = {
    messages: messages.slice(0, -1),
    ...(temperature !== undefined && { temperature }),
    ...(tokens !== undefined && { max_tokens: tokens }),
    ...(tools.length > 0 && { tools }),
  };
  const ids = { promptTokenIds: [], tokenIds: [], logprobs: [] };
  return { ...call, key: callKey(request, null), request, message: messages.at(-1)!, ...ids };
}
