/** One call to a hosted model, until it is answered: an outage is waited for as a judge's is, and never reaches the agent. */
import type { RolloutConfig } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { EngineConnection, HttpAnswer } from '../connections/engine-connection.ts';
import { parseCompletion, type Completion } from '../recorder/answer.ts';
import {
  HOSTED_RETRIES,
  readOutage,
  retryCall,
  type Outage,
  type SendLimits,
  type Trial,
} from '../recorder/retry-call.ts';
import { describeFailure, excerpt, parseError, type ErrorBody } from '../recorder/send.ts';

export interface AskedModel {
  /** The agent's name for it: `openai/gpt-5-mini`. */
  readonly name: string;
  readonly connection: EngineConnection;
}

/** `text` is the answer as it came. */
export type HostedAnswer = { readonly completion: Completion; readonly text: string } | HostedRefusal;

/** The server does not answer this very request; another one may do. */
export interface HostedRefusal {
  readonly refused: { readonly status: number; readonly error: ErrorBody };
}

type Times = Pick<RolloutConfig, 'callTimeoutMs' | 'callRetryBudgetMs'>;

/** The policy may have written it, so it is the attempt's affair: too long, or against the provider's rules. */
const OF_THE_REQUEST: readonly number[] = [400, 413, 422];

export function askHosted(model: AskedModel, body: string, limits: SendLimits, times: Times): Promise<HostedAnswer> {
  const { callTimeoutMs: deadlineMs, callRetryBudgetMs: budgetMs } = times;
  const { signals } = limits;
  return retryCall<HostedAnswer>({
    policy: HOSTED_RETRIES,
    limits: { ...limits, budgetMs },
    ask: async () => readAnswer(await model.connection.post(body, { headers: {}, deadlineMs, signals }), model),
    readError: (error) => ({ reason: describeFailure(error), retryAfterMs: 0, internal: null }),
    exhausted: (last) => exhausted(model, budgetMs, last),
    internal: (message) => {
      throw unanswered(model, message);
    },
    aborted: ({ reason }) => unanswered(model, `a call was given up while it did not answer (${reason})`),
  });
}

function readAnswer({ status, text, retryAfter }: HttpAnswer, model: AskedModel): Trial<HostedAnswer> {
  if (status === 200) {
    const completion = parseCompletion(text);
    if (completion !== null) return { answer: { completion, text } };
    const reason = `an answer that is no chat completion: ${excerpt(text)}`;
    return { outage: { reason, retryAfterMs: 0, internal: null } };
  }
  const { code, type, param = null } = parseError(text) ?? {};
  const message = excerpt(text);
  const reason = `${status}: ${message}`;
  const outage = readOutage({ status, retryAfter, code, type, reason, message }, HOSTED_RETRIES);
  if (outage !== null) return { outage };
  if (OF_THE_REQUEST.includes(status))
    return { answer: { refused: { status, error: { message, type, code, param } } } };
  throw refused(model, status, message);
}

function refused({ name, connection }: AskedModel, status: number, message: string): TemperError {
  const { keyVariable, url } = connection;
  const key = keyVariable === null ? 'pass keyVariable' : `set ${keyVariable} to a key that it accepts`;
  const remedies: Readonly<Record<number, string>> = {
    401: `${key}, where the command or the workers run`,
    403: 'check that the key may use this model',
    404: 'check the name of the model, and the address',
  };
  const isRedirect = status >= 300 && status < 400;
  const remedy = isRedirect
    ? 'prompts are sent only to the configured address, so redirects are not followed; configure the address that it redirects to'
    : (remedies[status] ?? 'check the name of the model, and the address');
  return badConfig(`the hosted model ${name} at ${url} refused with ${status}: ${message}; ${remedy}`);
}

/** A server that wants to be left alone for longer than a call may wait is left alone by the next try of all. */
function exhausted({ name, connection }: AskedModel, budgetMs: number, { reason, retryAfterMs }: Outage): TemperError {
  const message = `the hosted model ${name} at ${connection.url} did not answer a call within its retry budget of ${budgetMs} ms (last: ${reason})`;
  return new TemperError('EngineFailed', `${message}; what it answered before is kept`, { retryAfterMs });
}

function unanswered({ name }: AskedModel, message: string): TemperError {
  return new TemperError('EngineFailed', `the hosted model ${name}: ${message}`);
}
