import { aborted } from 'node:util';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { describeError, EXIT } from '../command-line/errors.ts';
import { isEnded, type StoredRun } from '../../store/records/run-reader.ts';
import { originOf } from '../command-line/keyed-place.ts';
import { readRuns } from '../runs/read-runs.ts';
import { printJson } from '../terminal/output.ts';
import type { ReviewContext } from './command.ts';
import { RewardDesk } from './desk.ts';
import { ReviewKeys } from './keys.ts';
import { DEFAULT_LINK_DAYS, expiryOf, reviewLink } from './links.ts';
import { reviewJson, reviewLines } from './lines.ts';
import { planReview } from './plan-review.ts';
import { ROUTES } from './routes.ts';
import { openReviewServer } from './server.ts';
import { Waker } from './waker.ts';

export async function serveReviews(context: ReviewContext): Promise<number> {
  const { project, env, output, signal, flags } = context;
  const place = planReview(context);
  const store = await openProjectStore(project, env);
  const keys = new ReviewKeys(place.key, await store.id());
  const waker = new Waker({ project, env }, store);
  const desk = new RewardDesk(store, (run) => waker.wake(run));
  const server = await openReviewServer({ place, keys, desk, routes: ROUTES });
  try {
    const told = { ...place, port: server.port };
    const links = { keys, base: originOf(told), expiresAt: expiryOf(DEFAULT_LINK_DAYS) };
    const runs = await readRuns(store, (error) => output.errorLine(describeError(error).text));
    const reviews = runs.flatMap(nameIfWaiting).map((run) => ({ run, url: reviewLink(links, run) }));
    if (flags.json) printJson(output, reviewJson(told, reviews));
    else for (const line of reviewLines(told, reviews)) output.line(line);
    await aborted(signal, signal);
  } finally {
    await server.close();
    await waker.close();
  }
  return EXIT.ok;
}

/** Its name, if it awaits rewards and has not ended. */
function nameIfWaiting({ file: { config }, state }: StoredRun): string[] {
  return config.external !== undefined && !(state && isEnded(state)) ? [config.run] : [];
}
