/** Recorded attempt for the report: the conversation by turns, without what earlier turns already showed. */
import { formatUsd } from '../../core/judge-spending.ts';
import type { AttemptRecord, CallRecord, ChatMessage, HostedCallRecord } from '../../store/records/trajectories.ts';
import { BOUNDS, clipText, type AttemptView, type MessageView, type TurnView } from './data.ts';

export function viewAttempt(record: AttemptRecord, title: string, rewards: Rewards): AttemptView {
  const shown = record.calls.slice(0, BOUNDS.callsPerAttempt);
  const leftOut = record.calls.length - shown.length;
  return {
    title,
    reward: rewards.own,
    advantage: rewards.own === null || rewards.mean === null ? null : rewards.own - rewards.mean,
    explanation: rewards.explanation === null ? null : clipText(rewards.explanation, 2000),
    failure: record.failure === null ? null : clipText(`${record.failure.type}: ${record.failure.message}`),
    metrics: { ...record.metrics, ...rewards.judged },
    logs: record.logs.slice(0, 50).map((line) => clipText(line, 500)),
    truncated: record.truncated,
    turns: shown.map((call, index) => viewTurn(call, index === 0 ? null : shown[index - 1]!)),
    leftOut: leftOut > 0 ? `${leftOut} more calls` : null,
    hosted: (record.hostedCalls ?? []).slice(0, BOUNDS.callsPerAttempt).map((call) => clipText(viewHosted(call), 500)),
  };
}

/** Judged reward and mean of the group: their difference is the advantage before scaling. */
export interface Rewards {
  readonly own: number | null;
  readonly mean: number | null;
  /** Reason of a judge, and the agent's own reward. */
  readonly explanation: string | null;
  readonly judged: Readonly<Record<string, number>>;
}

export const NO_VERDICT: Pick<Rewards, 'explanation' | 'judged'> = { explanation: null, judged: {} };

function viewTurn(call: CallRecord, previous: CallRecord | null): TurnView {
  const { messages } = call.request;
  const known = previous === null ? 0 : sharedLength(previous, messages);
  return {
    fresh: previous !== null && known === 0,
    messages: messages.slice(known).map(viewMessage),
    answer: { ...viewMessage(call.message), ...(call.role !== undefined && { role: call.role }) },
    finishReason: call.finishReason,
    reward: call.reward ?? null,
    promptTokens: call.promptTokenIds.length,
    tokenIds: call.tokenIds.slice(0, BOUNDS.tokensPerTurn),
    logprobs: call.logprobs.slice(0, BOUNDS.tokensPerTurn).map((logprob) => Number(logprob.toPrecision(4))),
  };
}

/** Number of messages shown with the previous call, with its answer; 0 if this call does not extend it. */
function sharedLength(previous: CallRecord, messages: readonly ChatMessage[]): number {
  const history = [...previous.request.messages, previous.message].map(viewMessage);
  if (messages.length < history.length) return 0;
  const extendsIt = history.every((message, index) => {
    const other = viewMessage(messages[index]!);
    return other.role === message.role && other.text === message.text;
  });
  return extendsIt ? history.length : 0;
}

/** `openai/gpt-5-mini, 412 + 9 tokens, $0.001: Yes.` */
function viewHosted({ model, role, choices, refusal, promptTokens, completionTokens, usd }: HostedCallRecord): string {
  const name = role === undefined ? model : `${role}, ${model}`;
  if (refusal !== null) return `${name} refused: ${refusal}`;
  const tokens =
    promptTokens === null || completionTokens === null
      ? 'tokens unknown'
      : `${promptTokens} + ${completionTokens} tokens`;
  const cost = usd === null ? [] : [`$${formatUsd(usd)}`];
  const said = choices.map(({ message }) => viewMessage(message).text).join('\n');
  return `${[name, tokens, ...cost].join(', ')}: ${said}`;
}

export function viewMessage(message: ChatMessage): MessageView {
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls.map(callText) : [];
  const text = typeof message.content === 'string' ? message.content : contentText(message.content);
  return { role: message.role, text: clipText([text, ...calls].filter((part) => part !== '').join('\n')) };
}

/** Call in source form: `search({"query": "budget"})`. */
function callText(call: unknown): string {
  const { function: called } = (call ?? {}) as { function?: { name?: unknown; arguments?: unknown } };
  if (typeof called?.name !== 'string' || typeof called.arguments !== 'string') return JSON.stringify(call);
  return `${called.name}(${called.arguments})`;
}

function contentText(content: unknown): string {
  return content === null || content === undefined ? '' : JSON.stringify(content, null, 1);
}
