import { aborted } from 'node:util';
import { REVIEW_KEY_VARIABLE } from '../../core/names/door-keys.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { describeError, EXIT } from '../command-line/errors.ts';
import { isEnded, type StoredRun } from '../../store/records/runs/run-reader.ts';
import { bearerWords, originOf, planKeyedPlace, type KeyedPlace } from '../command-line/keyed-place.ts';
import { Waker } from '../connections/wake.ts';
import { readRuns } from '../../store/records/runs/read-runs.ts';
import { printJson } from '../terminal/output.ts';
import { DEFAULT_REVIEW_PORT, type ReviewContext } from './command.ts';
import { RewardDesk } from './desk.ts';
import { ReviewKeys } from '../../operations/review/keys.ts';
import { checkReviewKey, DEFAULT_LINK_DAYS, expiryOf, reviewLink } from '../../operations/review/links.ts';
import { openReviewServer } from './server.ts';

export async function serveReviews(context: ReviewContext): Promise<number> {
  const { project, env, output, signal, flags } = context;
  const place = planReview(context);
  const store = await openProjectStore(project, env);
  const keys = new ReviewKeys(place.key, await store.id());
  const waker = new Waker({ project, env }, store);
  const desk = new RewardDesk(store, (run) => waker.wake(run));
  const server = await openReviewServer({ place, keys, desk });
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

/** Address and key, checked before anything is started. */
export function planReview(context: Pick<ReviewContext, 'flags' | 'env' | 'output'>): KeyedPlace {
  const keyed = { command: 'temper review', keyVariable: REVIEW_KEY_VARIABLE, defaultPort: DEFAULT_REVIEW_PORT };
  const place = planKeyedPlace(keyed, context);
  checkReviewKey(place.key);
  return place;
}

type ReviewPlace = Pick<KeyedPlace, 'host' | 'port' | 'key' | 'isNewKey'>;

/** A run that waits, and the link to its questions. */
interface ReviewedRun {
  readonly run: string;
  readonly url: string;
}

function reviewJson(place: ReviewPlace, reviews: readonly ReviewedRun[] = []): object {
  return { url: originOf(place), keyVariable: REVIEW_KEY_VARIABLE, reviews };
}

/** Its address, its key, and example requests. */
export function reviewLines(place: ReviewPlace, reviews: readonly ReviewedRun[] = []): string[] {
  const { key, isNewKey } = place;
  const url = originOf(place);
  return [
    `rewards are taken at ${url}; Ctrl-C stops it`,
    `key     ${isNewKey ? `new at each start; set ${REVIEW_KEY_VARIABLE} to choose one` : `in ${REVIEW_KEY_VARIABLE}`}`,
    `links   temper rewards RUN --links ${url}${isNewKey ? `, with the key in ${REVIEW_KEY_VARIABLE}` : ''}`,
    ...reviews.map(({ run, url: link }) => `review  ${run}: ${link}`),
    '',
    ...(isNewKey ? [`export ${REVIEW_KEY_VARIABLE}=${key}`] : []),
    `curl ${url}/v1/runs/RUN/rewards ${bearerWords(REVIEW_KEY_VARIABLE)}`,
    `curl ${url}/v1/runs/RUN/attempts/ATTEMPT/reward ${bearerWords(REVIEW_KEY_VARIABLE)} -d '{"reward": 0.7}'`,
  ];
}
