/** Recorded calls of models in Langfuse, as spans, and their scores: https://api.reference.langfuse.com. */
import { z } from 'zod';

import type { ReadSpan } from '../../../outbound/trace/otlp/decode.ts';
import { langfuseService } from '../../../play/sources/langfuse.ts';
import { askService, type Service } from '../../../play/sources/service-client.ts';
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
const Observations = z.object({ data: z.array(Observation), meta: z.looseObject({ cursor: z.string().nullish() }) });

const Score = z.looseObject({
  value: z.unknown().optional(),
  subject: z.looseObject({ id: z.string() }).nullish(),
});
const ScorePage = z.object({ data: z.array(Score), meta: z.looseObject({ cursor: z.string().nullish() }) });

const OBSERVATIONS_AT_ONCE = 200;
const SCORES_AT_ONCE = 100;

export interface LangfuseTraces {
  readonly spans: readonly ReadSpan[];
  readonly scores: Scores;
}

/** The newest calls from a time on, at most `most`, with the scores of this name. */
export async function readLangfuse(
  env: NodeJS.ProcessEnv,
  { since, most, score }: { since: string | null; most: number; score: string },
): Promise<LangfuseTraces> {
  const service = langfuseService(env);
  const spans: ReadSpan[] = [];
  for await (const observation of readObservations(service, since)) {
    spans.push(toSpan(observation));
    if (spans.length >= most) break;
  }
  return { spans, scores: await readScores(service, score) };
}

async function* readObservations(service: Service, since: string | null): AsyncGenerator<z.output<typeof Observation>> {
  const fixed = { type: 'GENERATION', fields: 'core,basic,io', limit: String(OBSERVATIONS_AT_ONCE) };
  let cursor: string | null = null;
  do {
    const query = { ...fixed, ...(since !== null && { fromStartTime: since }), ...(cursor !== null && { cursor }) };
    const question = { what: 'recorded calls', path: '/api/public/v2/observations', query };
    const page: z.output<typeof Observations> = await askService(service, question, Observations);
    yield* page.data;
    cursor = page.meta.cursor ?? null;
  } while (cursor !== null);
}

/** A score is of a trace, of a span or of a session: all of them have ids of their own. */
async function readScores(service: Service, name: string): Promise<Scores> {
  const scores = new Map<string, number[]>();
  let cursor: string | null = null;
  do {
    const fixed = { name, fields: 'subject', limit: String(SCORES_AT_ONCE) };
    const query = { ...fixed, ...(cursor !== null && { cursor }) };
    const question = { what: `scores named ${name}`, path: '/api/public/v3/scores', query };
    const page: z.output<typeof ScorePage> = await askService(service, question, ScorePage);
    for (const { value, subject } of page.data) {
      const number = typeof value === 'boolean' ? Number(value) : value;
      if (subject == null || typeof number !== 'number') continue;
      scores.set(subject.id, [...(scores.get(subject.id) ?? []), number]);
    }
    cursor = page.meta.cursor ?? null;
  } while (cursor !== null);
  return scores;
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
