/** A judge as something that answers: a hosted model, or a model on the run's own engine. */
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { CONTEXT_TOO_LONG } from '../../core/contract/wire-constants.ts';
import { wellFormedJson } from '../../core/text/json-text.ts';
import type { JudgeAnswer } from '../../store/records/judging/verdicts.ts';
import {
  askModel,
  ENGINE_JUDGE_KIND,
  HOSTED_JUDGE_KIND,
  refusalOf,
  type AskedModel,
  type AskOptions,
  type RefusedRequest,
} from '../connections/ask-model.ts';
import { SYSTEM_CLOCK } from '../connections/clock.ts';
import type { Completion } from '../connections/completion.ts';
import { connectTo } from '../connections/connect-hosted.ts';
import type { EngineConnection } from '../connections/engine-connection.ts';
import { readUsed, withAddress } from '../connections/providers.ts';
import type { SendLimits } from '../connections/retry-call.ts';
import { checkPolicy } from '../recorder/answer.ts';
import { priceOf, requireJudgeKey } from './judge-model.ts';
import type { Ruler } from './ruler.ts';

export interface JudgeMessage {
  readonly role: 'system' | 'user';
  readonly content: string;
}

export interface Judge {
  readonly ruler: Ruler;
  readonly connection: EngineConnection;
  /** The adapter that must answer, null for a base model; absent for a hosted judge. */
  readonly adapterSha256?: string | null;
}

export interface JudgePatience extends Pick<SendLimits, 'checkFresh' | 'outage'>, Readonly<AskOptions['times']> {
  /** Default: the system's clock. */
  readonly clock?: SendLimits['clock'];
  /** Ends the call, its waits included. */
  readonly signal: AbortSignal;
}

/** The engine, and what it must answer with: null for a base model. */
export interface JudgingEngine {
  readonly connection: EngineConnection;
  readonly adapterSha256: string | null;
}

/** A judge, and by what its verdicts are known: a checkpoint by its adapter's hash, for its name may stand for another one elsewhere. */
export interface OpenJudge {
  readonly judge: Judge;
  readonly model: string;
}

/** Throws where the judge is on an engine and there is none. */
export function openJudge(ruler: Ruler, engine: JudgingEngine | null, env: NodeJS.ProcessEnv): OpenJudge {
  const { judge } = ruler;
  if (judge.kind === 'hosted') {
    const hosted = { ...withAddress(judge, env), key: requireJudgeKey(judge, env) };
    return { judge: { ruler, connection: connectTo(hosted, env) }, model: judge.name };
  }
  if (engine === null) throw badConfig(`the judge ${judge.name} needs the engine; pass { engine: { connection } }`);
  const { adapterSha256 } = engine;
  const model = adapterSha256 === null ? judge.name : `engine/${adapterSha256}`;
  return { judge: { ruler, ...engine }, model };
}

/** The judge cannot read so much; shorter attempts may do. */
export class PromptTooLong extends Error {
  override readonly name = 'PromptTooLong';
}

/** One question, until it is answered: an outage is waited for as the provider asks, within a budget. */
export async function askJudge(
  { ruler, connection, adapterSha256 }: Judge,
  messages: readonly JudgeMessage[],
  { callTimeoutMs, callRetryBudgetMs, signal, checkFresh, outage, clock = SYSTEM_CLOCK }: JudgePatience,
): Promise<JudgeAnswer> {
  const { judge, request } = ruler;
  const isOnEngine = judge.kind === 'engine';
  const title = `the judge ${judge.name}`;
  const model: AskedModel = { kind: isOnEngine ? ENGINE_JUDGE_KIND : HOSTED_JUDGE_KIND, connection, title };
  // An engine samples greedily and seeded, so that the same question has the same answer.
  const defaults = isOnEngine ? { temperature: 0, seed: 0 } : {};
  const body = wellFormedJson(JSON.stringify({ ...defaults, ...request, model: judge.model, messages }));
  const asked = await askModel(model, body, {
    limits: { signals: [signal], checkFresh, outage, clock },
    times: { callTimeoutMs, callRetryBudgetMs },
  });
  if ('failure' in asked) throw new TemperError('JudgeFailed', `${title} ${asked.failure}; ${model.kind.afterOutage}`);
  if ('refused' in asked)
    throw isTooLong(asked) ? new PromptTooLong(String(asked.refused.error.message)) : refusalOf(model, asked);
  if (isOnEngine) checkAdapter(title, asked.completion, adapterSha256 ?? null);
  return readAnswer(ruler, asked.completion);
}

const TOO_LONG =
  // oxlint-disable-next-line temper/linear-regex -- 40 characters at each match
  /context[ _]length|context window|maximum context|too (?:long|large|many tokens)|exceeds? .{0,40}tokens/i;

function isTooLong({ refused: { status, error } }: RefusedRequest): boolean {
  return (
    status === 413 || (status === 400 && (error.code === CONTEXT_TOO_LONG || TOO_LONG.test(String(error.message))))
  );
}

/** An engine that knows no adapters answers for the base model. */
function checkAdapter(model: string, { adapter_sha256 = null, ...completion }: Completion, expected: string | null) {
  checkPolicy({ ...completion, adapter_sha256 }, { model, adapterSha256: expected });
}

function readAnswer(ruler: Ruler, { choices, ...completion }: Completion): JudgeAnswer {
  const { message, finish_reason: finishReason } = choices[0]!;
  const { promptTokens, completionTokens, cost } = readUsed(completion['usage']);
  const used = { promptTokens: countOf(promptTokens), completionTokens: countOf(completionTokens) };
  const content: unknown = message.content;
  return {
    text: typeof content === 'string' ? content : '',
    finishReason: finishReason ?? '',
    ...used,
    usd: priceOf(ruler.judge, ruler, { ...used, cost }),
  };
}

function countOf(value: number | null): number {
  return Number.isSafeInteger(value) ? value! : 0;
}
