/**
 * A program's calls, as its attempt's recorder takes them. A program was written for some model and some settings: what
 * must be the run's becomes the run's, and the log says so. A request that is wrong fails its attempt, and nothing else.
 */
import { showValue, TemperError } from '../../core/contract/failures.ts';
import { answerRequest, type Answerer } from '../dialects/answer-request.ts';
import type { Memory } from '../dialects/dialect.ts';
import { isNeutral } from '../recorder/request.ts';
import type { CallOptions, Recorder } from '../recorder/recorder.ts';
import type { RequestHandler } from './gateway.ts';
import type { AskedRequest } from '../recorder/canonical.ts';

export interface GatewayAttempt {
  readonly recorder: Recorder;
  /** Adds a line to the attempt's log. */
  readonly log: (line: string) => void;
  /** Rewrite function of the agent's file. */
  readonly rewrite: ((asked: AskedRequest) => AskedRequest) | null;
  /** Whether the program may post its result. */
  readonly takesResult: boolean;
}

/** Sampling parameters of a request. */
const PINNED = [
  'temperature',
  'seed',
  'top_p',
  'top_k',
  'min_p',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
] as const;

/** The requests of one attempt, in any dialect. */
export function createRequestHandler(attempt: GatewayAttempt): RequestHandler {
  const memory: Memory = new Map();
  const answerer = createAnswerer(attempt);
  return {
    answer: (request) => answerRequest(request, answerer, { memory }),
    onTooLong: () => void (attempt.recorder.hasOutgrown = true),
    takesResult: attempt.takesResult,
  };
}

/** Calls in the terms of chat completions. */
export function createAnswerer({ recorder, log, rewrite }: Omit<GatewayAttempt, 'takesResult'>): Answerer {
  const noted = new Set<string>();
  const note = (line: string): void => {
    if (!noted.has(line)) log(line);
    noted.add(line);
  };
  const refuse = (error: unknown): Promise<TemperError> => recorder.fail(messageOf(error));
  const call = async (asked: AskedRequest, options: CallOptions) => {
    const outside = { ...options, boundsTokens: true, isOutside: true };
    let pinned: AskedRequest;
    try {
      pinned = pin(rewrite === null ? asked : rewritten(rewrite(asked)), recorder, note);
      recorder.check(pinned, outside);
    } catch (error) {
      throw await refuse(error);
    }
    return recorder.call(pinned, outside);
  };
  return { call, refuse };
}

/** It is the agent's own code, and may return anything. */
function rewritten(request: unknown): AskedRequest {
  const { messages } = (request ?? {}) as Partial<AskedRequest>;
  if (Array.isArray(messages) && messages.length > 0) return request as AskedRequest;
  throw new TemperError('AgentFailed', `rewrite must return the request with its messages, got ${showValue(request)}`);
}

function pin(asked: AskedRequest, { model, mode, rollout }: Recorder, note: (line: string) => void): AskedRequest {
  const pinned: AskedRequest = { ...asked, model };
  if (asked['model'] !== model) note(`gateway: model ${showValue(asked['model'])} is the run's model here`);
  // A hosted model has no run.
  if (mode === 'text') return pinned;
  const tokens = asked['max_completion_tokens'] ?? asked['max_tokens'];
  if (typeof tokens === 'number' && tokens > rollout.maxTokens)
    note(`gateway: max_tokens ${tokens} is the run's ${rollout.maxTokens} here`);
  for (const name of PINNED) {
    const value = pinned[name];
    delete pinned[name];
    if (value === undefined || isNeutral(name, value)) continue;
    if (name === 'temperature' && value === rollout.temperature) continue;
    note(`gateway: ${name} ${showValue(value)} has no effect, because sampling is the run's`);
  }
  return pinned;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
