/** `runs/RUN/attempts`: the query of a search over a run's attempts. */
import { NAME_PATTERN } from '../../core/wire-constants.ts';
import type { AttemptQuery, AttemptsView } from '../api/attempt-views.ts';
import { NotFound, type ViewContext } from '../context/context.ts';
import { readChoice, readCount, readFlag, readQueryNumber, readQueryText } from '../context/query.ts';
import { runKey } from '../../store/layout.ts';
import { SORTS } from './match.ts';

const MOST_ROWS = 500;

export async function searchAttempts(context: ViewContext, run: string, query: URLSearchParams): Promise<AttemptsView> {
  const asked = parseAttemptQuery(query);
  if (!NAME_PATTERN.test(run) || (await context.store.read(runKey(run))) === null)
    throw new NotFound(`the store ${context.store.uri} has no run ${run}`);
  return context.index.search(run, asked);
}

/** Throws BadConfig for a wrong parameter. */
export function parseAttemptQuery(query: URLSearchParams): AttemptQuery {
  const asked: { [Name in keyof AttemptQuery]: AttemptQuery[Name] | undefined } = {
    text: readQueryText(query, 'text'),
    tool: readQueryText(query, 'tool'),
    failure: readQueryText(query, 'failure'),
    truncated: readFlag(query, 'truncated'),
    minReward: readQueryNumber(query, 'minReward'),
    maxReward: readQueryNumber(query, 'maxReward'),
    metric: readQueryText(query, 'metric'),
    scenario: readQueryText(query, 'scenario'),
    fromStep: readCount(query, 'fromStep'),
    toStep: readCount(query, 'toStep'),
    kind: readChoice(query, 'kind', ['train', 'eval'] as const),
    sort: readChoice(query, 'sort', SORTS),
    offset: readCount(query, 'offset'),
    limit: readCount(query, 'limit', MOST_ROWS),
  };
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
}
