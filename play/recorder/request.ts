/**
 * Rules for an agent's requests. While training, a request may not change what makes the ratio between sampler and
 * trainer right. Refusals say why, and a parameter without effect is refused as well.
 */
import { hash } from 'node:crypto';
import type { RolloutConfig } from '../../core/contract/contract.ts';
import type { TemperError } from '../../core/contract/failures.ts';
import { canonicalJson } from '../../core/text/hashes.ts';
import { wellFormed } from '../../core/text/json-text.ts';
import type { CallRequest } from '../../store/records/groups/trajectories.ts';
import { canonicalRequest, type AnsweredCalls, badParameter, type AskedRequest } from './canonical.ts';

/** `train` keeps ρ right; `eval` passes what the engine takes; `text` is any hosted model, asked for nothing of ours. */
export type RequestMode = 'train' | 'eval' | 'text';

/** The part of a run's configuration that completes a request. */
export type AskedRollout = Pick<
  RolloutConfig,
  'temperature' | 'maxTokens' | 'chatTemplateKwargs' | 'chatTemplateSha256'
>;

export interface RequestRules {
  /** The one model that this client answers for. */
  model: string;
  mode: RequestMode;
  rollout: AskedRollout;
  /** Answers of the attempt so far. */
  answered: AnsweredCalls;
  /** See `CallOptions`. */
  boundsTokens: boolean;
}

export interface CheckedRequest {
  request: CallRequest;
  /** The agent itself wants log-probabilities in the answer. */
  wantsLogprobs: boolean;
}

type Body = AskedRequest;

/** Not part of what is asked: the recorder fills them in, or they change no sampled token of the models that we train. */
const DROPPED = new Set(
  [
    'model logprobs user metadata stream stream_options store service_tier safety_identifier',
    'prompt_cache_key prompt_cache_retention reasoning_effort verbosity',
  ].flatMap((names) => names.split(' ')),
);
/** Honoured while training: a call that must be is opened by the prompt, and what is sampled after it is sampled freely. */
const KEPT = new Set(
  [
    'messages tools tool_choice parallel_tool_calls max_tokens stop stop_token_ids n',
    // They change the prompt alone; the template is the run's.
    'chat_template_kwargs chat_template_sha256',
    // They change the form of the answer alone.
    'top_logprobs separate_reasoning',
  ].flatMap((names) => names.split(' ')),
);
/** Values that change nothing: accepted while training, and left out of what is asked, in an evaluation too. */
const NEUTRAL: Record<string, readonly unknown[]> = {
  top_p: [1],
  top_k: [-1, 0],
  min_p: [0],
  presence_penalty: [0],
  frequency_penalty: [0],
  repetition_penalty: [1],
  parallel_tool_calls: [true],
  tool_choice: ['auto'],
  top_logprobs: [0],
};

export function checkRequest(given: AskedRequest, rules: RequestRules): CheckedRequest {
  const asked = wellFormed(given);
  if (asked['model'] !== rules.model)
    throw badParameter(
      'model',
      asked['model'],
      `must be the rollout's model ${rules.model}`,
      'pass on the model that rollout got',
    );
  const wantsLogprobs = asked['logprobs'] === true;
  if (rules.mode === 'text') return { request: asRequest(asked, ['model', 'stream', 'stream_options']), wantsLogprobs };
  const named = nameMaxTokens(canonicalRequest(asked, rules.answered), rules);
  if (rules.mode === 'train') checkTraining(named, rules);
  const { temperature, maxTokens } = rules.rollout;
  const filled = { temperature, max_tokens: maxTokens, ...named, ...templateOf(rules.rollout, named) };
  const neutral = Object.keys(NEUTRAL).filter((name) => isNeutral(name, named[name]));
  return { request: asRequest(filled, [...DROPPED, ...neutral]), wantsLogprobs };
}

/** The same request has the same key in every repetition, whatever the policy; seeds follow from it. */
export function callKey(request: CallRequest, label: string | null, role?: string): string {
  const { model: _model, seed: _seed, stream: _stream, stream_options: _options, user: _user, ...asked } = request;
  const named = { ...(label === null ? {} : { label }), ...(role === undefined ? {} : { role }) };
  return hash('sha256', canonicalJson({ ...asked, ...named }));
}

/** Whether a request was sampled as in training. A seed of its own changes nothing about that. */
export function samplesAsTraining(
  { seed: _seed, return_token_ids: _ids, ...asked }: CallRequest,
  { temperature }: Pick<AskedRollout, 'temperature'>,
): boolean {
  return Object.entries(asked).every(([name, value]) =>
    name === 'temperature' ? value === temperature : KEPT.has(name) || isNeutral(name, value),
  );
}

function checkTraining(asked: Body, { rollout }: RequestRules): void {
  for (const [name, value] of Object.entries(asked)) {
    if (name === 'temperature') checkTemperature(value, rollout.temperature);
    else if (!KEPT.has(name) && !DROPPED.has(name) && !isNeutral(name, value)) throw refuseTraining(name, value);
  }
}

function checkTemperature(value: unknown, temperature: number): void {
  if (value === temperature) return;
  throw badParameter(
    'temperature',
    value,
    `must be absent or the run's ${temperature} while training`,
    "leave it out, or set the run's temperature",
  );
}

/** A value that changes nothing. */
export function isNeutral(name: string, value: unknown): boolean {
  if (name === 'response_format') return (value as { type?: unknown }).type === 'text';
  return Object.hasOwn(NEUTRAL, name) && NEUTRAL[name]!.includes(value);
}

function refuseTraining(name: string, value: unknown): TemperError {
  if (name === 'seed') return badParameter(name, value, "is the run's while training", 'leave it out');
  const reason = 'cannot be set while training (what is sampled must be what the trainer computes)';
  return badParameter(name, value, reason, 'leave it out');
}

/** The run's template, and its variables with those of the request over them. */
function templateOf(
  { chatTemplateKwargs: ofRun, chatTemplateSha256: sha256 }: AskedRollout,
  { chat_template_kwargs: own, chat_template_sha256: named }: Body,
): { chat_template_kwargs?: object; chat_template_sha256?: string } {
  if (named !== undefined && named !== sha256)
    throw badParameter('chat_template_sha256', named, "is the run's", 'leave it out');
  return {
    ...(ofRun === undefined ? {} : { chat_template_kwargs: { ...ofRun, ...(own as object | undefined) } }),
    ...(sha256 === undefined ? {} : { chat_template_sha256: sha256 }),
  };
}

/** One name for one thing; both are the same to an engine. */
function nameMaxTokens(asked: Body, { boundsTokens, rollout }: RequestRules): Body {
  const { max_completion_tokens: tokens = asked['max_tokens'], ...rest } = asked;
  if (tokens === undefined) return rest;
  return { ...rest, max_tokens: boundsTokens ? Math.min(Number(tokens), rollout.maxTokens) : tokens };
}

function asRequest(body: Body, dropped: readonly string[]): CallRequest {
  const names = new Set(dropped);
  const kept = Object.fromEntries(Object.entries(body).filter(([name]) => !names.has(name)));
  return { messages: body.messages, ...kept };
}
