/** Lines that `temper review` prints when it is ready: its address, its key, and an example request. */
import { REVIEW_KEY_VARIABLE } from '../../core/door-keys.ts';
import { bearerWords, originOf, type KeyedPlace } from '../command-line/keyed-place.ts';

type ReviewPlace = Pick<KeyedPlace, 'host' | 'port' | 'key' | 'isNewKey'>;

/** A run that waits, and the link to its questions. */
export interface ReviewedRun {
  readonly run: string;
  readonly url: string;
}

export function reviewJson(place: ReviewPlace, reviews: readonly ReviewedRun[] = []): object {
  return { url: originOf(place), keyVariable: REVIEW_KEY_VARIABLE, reviews };
}

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
