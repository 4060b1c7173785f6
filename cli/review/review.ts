import { aborted } from 'node:util';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { EXIT } from '../command-line/errors.ts';
import { isEnded, listRuns, readRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { originOf } from '../command-line/keyed-place.ts';
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
    const reviews = (await listWaiting(store)).map((run) => ({ run, url: reviewLink(links, run) }));
    if (flags.json) printJson(output, reviewJson(told, reviews));
    else for (const line of reviewLines(told, reviews)) output.line(line);
    await aborted(signal, signal);
  } finally {
    await server.close();
    await waker.close();
  }
  return EXIT.ok;
}

/** Runs that await rewards, and have not ended. */
async function listWaiting(store: Store): Promise<string[]> {
  const runs = await Promise.all((await listRuns(store)).map((run) => readRun(store, run)));
  const waiting = runs.filter((run) => run?.file.config.external !== undefined && !(run.state && isEnded(run.state)));
  return waiting.map((run) => run!.file.config.run);
}
