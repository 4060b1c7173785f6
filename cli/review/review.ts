import { aborted } from 'node:util';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { EXIT } from '../command-line/errors.ts';
import { printJson } from '../terminal/output.ts';
import type { ReviewContext } from './command.ts';
import { RewardDesk } from './desk.ts';
import { ReviewKeys } from './keys.ts';
import { reviewJson, reviewLines } from './lines.ts';
import { planReview } from './plan-review.ts';
import { ROUTES } from './routes.ts';
import { openReviewServer } from './server.ts';
import { Waker } from './waker.ts';

export async function review(context: ReviewContext): Promise<number> {
  const { project, env, output, signal, flags } = context;
  const place = planReview(context);
  const store = await openProjectStore(project, env);
  const keys = new ReviewKeys(place.key, await store.id());
  const waker = new Waker({ project, env }, store);
  const desk = new RewardDesk(store, (run) => waker.wake(run));
  const server = await openReviewServer({ place, keys, desk, routes: ROUTES });
  try {
    const told = { ...place, port: server.port };
    if (flags.json) printJson(output, reviewJson(told));
    else for (const line of reviewLines(told)) output.line(line);
    await aborted(signal, signal);
  } finally {
    await server.close();
    await waker.close();
  }
  return EXIT.ok;
}
