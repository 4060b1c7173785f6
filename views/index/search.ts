/** `runs/RUN/attempts`: the query of a search over a run's attempts. */
import { NAME_PATTERN } from '../../core/wire-constants.ts';
import { parseAttemptQuery } from '../api/attempt-query.ts';
import type { AttemptsView } from '../api/attempt-views.ts';
import { NotFound, type ViewContext } from '../context/context.ts';
import { runKey } from '../../store/layout.ts';

export async function searchAttempts(context: ViewContext, run: string, query: URLSearchParams): Promise<AttemptsView> {
  const asked = parseAttemptQuery(query);
  if (!NAME_PATTERN.test(run) || (await context.store.read(runKey(run))) === null)
    throw new NotFound(`the store ${context.store.uri} has no run ${run}`);
  return context.index.search(run, asked);
}
