import { NAME_PATTERN } from '../../core/wire-constants.ts';
import { listRuns } from '../../store/records/run-reader.ts';
import { NotFound, type ViewContext } from '../context/context.ts';
import { runCacheOf, type RunHead } from './run-cache.ts';

/** The run, or NotFound with the names of those there are. */
export async function requireHead({ store }: Pick<ViewContext, 'store'>, run: string): Promise<RunHead> {
  const head = NAME_PATTERN.test(run) ? await runCacheOf(store).readHead(run) : null;
  if (head !== null) return head;
  const known = (await listRuns(store)).join(', ') || 'none';
  throw new NotFound(`the store ${store.uri} has no run ${run}; its runs: ${known}`);
}
