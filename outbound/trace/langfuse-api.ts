/** Rewards as scores of Langfuse's traces, and held-out scenarios as a data set. What is sent twice has one id. */
import pLimit from 'p-limit';

import { TemperError } from '../../core/contract/failures.ts';
import { callHttp, type HttpCaller } from '../../core/text/http.ts';
import { langfuseCaller, type LangfuseAccess } from './endpoint.ts';
import type { AttemptVerdict } from './evaluation-events.ts';
import { spanIdOf } from './ids.ts';
import { cutText } from './message-parts.ts';
import type { SpanPlace } from './otlp/span.ts';

export interface ScoredAttempt {
  readonly root: SpanPlace;
  readonly verdict: AttemptVerdict;
  readonly metadata: Readonly<Record<string, string | number>>;
}

interface DatasetItem {
  readonly id: string;
  readonly input: unknown;
  readonly metadata: Readonly<Record<string, string | number>>;
}

const AT_ONCE = 8;
/** Longest comment that is worth a reader's time; the trace has all of it. */
const LONGEST_COMMENT = 5000;

export class LangfuseApi {
  readonly #access: LangfuseAccess;
  readonly #environment: string | null;
  readonly #caller: HttpCaller;

  constructor(access: LangfuseAccess, environment: string | null, calling: Pick<HttpCaller, 'fetch' | 'signal'>) {
    this.#access = access;
    this.#environment = environment;
    this.#caller = langfuseCaller(access.authorization, calling);
  }

  async score(attempts: readonly ScoredAttempt[]): Promise<void> {
    const limit = pLimit(AT_ONCE);
    const scores = attempts.flatMap((attempt) => scoresOf(attempt));
    await Promise.all(scores.map((score) => limit(() => this.#post('scores', { ...score, ...this.#placed() }))));
  }

  /** The data set is made if there is none of this name. Returns its id. */
  async putDataset(datasetName: string, items: readonly DatasetItem[]): Promise<string> {
    const { id } = ((await this.#post('v2/datasets', { name: datasetName })) ?? {}) as { id?: unknown };
    if (typeof id !== 'string')
      throw new TemperError(
        'TargetUnavailable',
        `Langfuse must name the id of the data set ${datasetName}; check its version`,
      );
    const limit = pLimit(AT_ONCE);
    await Promise.all(items.map((item) => limit(() => this.#post('dataset-items', { ...item, datasetName }))));
    return id;
  }

  #placed(): object {
    return this.#environment === null ? {} : { environment: this.#environment };
  }

  async #post(path: string, json: object): Promise<unknown> {
    const { url, authorization } = this.#access;
    const answer = await callHttp(this.#caller, {
      method: 'POST',
      url: `${url}/api/public/${path}`,
      headers: { authorization },
      json,
    });
    return answer.json;
  }
}

/** The reward, and each of its parts. */
function scoresOf({ root, verdict, metadata }: ScoredAttempt): object[] {
  const { reward, explanation, judge, label, parts } = verdict;
  if (reward === null) return [];
  const shared = { traceId: root.traceId, observationId: root.spanId, dataType: 'NUMERIC' };
  const own = { name: 'reward', value: reward, metadata: { ...metadata, judge, ...(label !== null && { label }) } };
  const comment = explanation === null ? {} : { comment: cutText(explanation, LONGEST_COMMENT) };
  const others = Object.entries(parts).map(([name, value]) => ({ name, value, metadata }));
  return [{ ...own, ...comment }, ...others].map((score) => ({
    id: `temper-${spanIdOf(root.traceId, 'score', score.name)}`,
    ...shared,
    ...score,
  }));
}
