/** Recorded calls of models in Langfuse, as spans, and their scores: https://api.reference.langfuse.com. */
import { z } from 'zod';

import { badConfig, TemperError } from '../../../core/contract/failures.ts';
import { callHttp } from '../../../core/text/http.ts';
import { langfuseAccess, langfuseCaller } from '../../../outbound/trace/endpoint.ts';
import type { ReadSpan } from '../../../outbound/trace/otlp/decode.ts';
import { askAgain } from '../../../play/sources/ask-again.ts';
import type { CommandEnvironment } from '../../command-line/command.ts';
import { patienceOf } from '../../planning/load-agent.ts';
import type { Scores } from './trace-conversations.ts';

const Observation = z.looseObject({
  id: z.string(),
  traceId: z.string().nullable(),
  startTime: z.string(),
  level: z.string().optional(),
  sessionId: z.string().nullish(),
  name: z.string().nullish(),
  input: z.unknown().optional(),
  output: z.unknown().optional(),
});
const Score = z.looseObject({
  value: z.unknown().optional(),
  subject: z.looseObject({ id: z.string() }).nullish(),
});

const OBSERVATIONS_AT_ONCE = 200;
const SCORES_AT_ONCE = 100;
/** A run calls its targets until they answer; a command gives up. */
const REMEDY = 'check LANGFUSE_BASE_URL and the network, and run the command again';

export interface LangfuseTraces {
  readonly spans: readonly ReadSpan[];
  readonly scores: Scores;
}

type Place = Pick<CommandEnvironment, 'env' | 'signal' | 'output'>;

/** The newest calls from a time on, at most `most`, with the scores of this name, or none. */
export async function readLangfuse(
  place: Place,
  { since, most, score }: { since: string | null; most: number; score: string | null },
): Promise<LangfuseTraces> {
  const fixed = { type: 'GENERATION', fields: 'core,basic,io', limit: String(OBSERVATIONS_AT_ONCE) };
  const query = { ...fixed, ...(since !== null && { fromStartTime: since }) };
  const spans: ReadSpan[] = [];
  for await (const observation of readPages(place, 'v2/observations', query, Observation)) {
    spans.push(toSpan(observation));
    if (spans.length >= most) break;
  }
  const hasScores = score !== null && spans.length > 0;
  return { spans, scores: hasScores ? await readScores(place, score, oldestOf(spans)) : new Map() };
}

/** Start of the oldest call: no score of these calls was given before it, and a project may have a million others. */
function oldestOf(spans: readonly ReadSpan[]): string {
  const first = spans.reduce((start, span) => (span.start < start ? span.start : start), spans[0]!.start);
  return new Date(Number(first / 1_000_000n)).toISOString();
}

/** A score is of a trace, of a span or of a session: all of them have ids of their own. */
async function readScores(place: Place, name: string, fromTimestamp: string): Promise<Scores> {
  const query = { name, fields: 'subject', limit: String(SCORES_AT_ONCE), fromTimestamp };
  const scores = new Map<string, number[]>();
  for await (const { value, subject } of readPages(place, 'v3/scores', query, Score)) {
    const number = typeof value === 'boolean' ? Number(value) : value;
    if (subject == null || typeof number !== 'number') continue;
    const known = scores.get(subject.id) ?? [];
    known.push(number);
    scores.set(subject.id, known);
  }
  return scores;
}

async function* readPages<Item>(
  place: Place,
  path: string,
  query: Readonly<Record<string, string>>,
  item: z.ZodType<Item>,
): AsyncGenerator<Item> {
  const schema = z.object({ data: z.array(item), meta: z.looseObject({ cursor: z.string().nullish() }) });
  let cursor: string | null = null;
  do {
    const json = await ask(place, path, { ...query, ...(cursor !== null && { cursor }) });
    const page = schema.safeParse(json);
    if (!page.success) {
      const rule = `Langfuse must answer /api/public/${path} as its API describes it, its answer has another form`;
      const remedy = 'check LANGFUSE_BASE_URL, and upgrade Temper or the server';
      throw badConfig(`${rule}; ${remedy}`, { cause: page.error });
    }
    yield* page.data.data;
    cursor = page.data.meta.cursor ?? null;
  } while (cursor !== null);
}

/** What may pass is asked again. */
async function ask(place: Place, path: string, query: Readonly<Record<string, string>>): Promise<unknown> {
  const { env, signal } = place;
  const { url, authorization } = langfuseAccess(env);
  const caller = {
    ...langfuseCaller(authorization, { fetch, signal }),
    remedy: REMEDY,
    outage: 'SourceUnavailable',
  } as const;
  const request = {
    url: `${url}/api/public/${path}?${new URLSearchParams(query).toString()}`,
    headers: { authorization },
  };
  try {
    return (await askAgain(() => callHttp(caller, request), patienceOf(place))).json;
  } catch (error) {
    if (!(error instanceof TemperError) || error.type !== 'DeploymentFailed') throw error;
    throw badConfig(`${error.message}; ${REMEDY}`, { cause: error });
  }
}

function toSpan(observation: z.output<typeof Observation>): ReadSpan {
  const { id, traceId, startTime, level, sessionId, name, input = null, output = null } = observation;
  const start = BigInt(Date.parse(startTime) || 0) * 1_000_000n;
  return {
    traceId: traceId ?? id,
    spanId: id,
    parentSpanId: null,
    name: name ?? '',
    start,
    end: start,
    attributes: {
      'langfuse.observation.type': 'generation',
      'langfuse.observation.input': asText(input),
      'langfuse.observation.output': asText(output),
      ...(sessionId != null && { 'session.id': sessionId }),
    },
    events: [],
    hasFailed: level === 'ERROR',
    resource: {},
    scope: 'langfuse',
  };
}

/** The API gives texts, which are JSON where they were recorded as such; its older versions gave values. */
function asText(value: unknown): string | null {
  return value === null || typeof value === 'string' ? value : JSON.stringify(value);
}
