/** Applies the user's redaction. Token ids would still tell what was redacted: then none are kept. */
import { z } from 'zod';

import { firstIssue } from '../../../core/contract.ts';
import { badConfig } from '../../../core/failures.ts';
import { canonicalJson } from '../../../core/hashes.ts';
import { callKey } from '../../../play/recorder/request.ts';
import type { RedactConversation, ServedConversation } from '../../../store/records/served-conversation.ts';
import type { CallRecord, CallRequest, ChatMessage } from '../../../store/records/trajectories.ts';

const RedactedSchema = z
  .looseObject({
    messages: z.array(z.looseObject({ role: z.string() })).min(2, 'must have the question and the answer'),
    tools: z.array(z.unknown()).optional(),
  })
  .nullable();

export interface Redacted {
  call: CallRecord;
  isChanged: boolean;
}

type Place = Pick<ServedConversation, 'conversation' | 'policy'>;

/** Null: nothing of it is to be kept. */
export async function redactCall(redact: RedactConversation, call: CallRecord, place: Place): Promise<Redacted | null> {
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
