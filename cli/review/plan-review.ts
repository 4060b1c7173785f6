/** Address and key of `temper review`, checked before anything is started. */
import { REVIEW_KEY_VARIABLE } from '../../core/door-keys.ts';
import { planKeyedPlace, type KeyedPlace } from '../command-line/keyed-place.ts';
import { UsageError } from '../command-line/errors.ts';
import { DEFAULT_REVIEW_PORT, type ReviewContext } from './command.ts';

/** A link lets whoever reads it try keys without asking the server: a short one would be found. */
const LEAST_KEY_CHARACTERS = 24;

export function planReview(context: Pick<ReviewContext, 'flags' | 'env' | 'output'>): KeyedPlace {
  const keyed = { command: 'temper review', keyVariable: REVIEW_KEY_VARIABLE, defaultPort: DEFAULT_REVIEW_PORT };
  const place = planKeyedPlace(keyed, context);
  checkReviewKey(place.key);
  return place;
}

/** Key in the environment, for what signs links. */
export function requireReviewKey(env: Readonly<NodeJS.ProcessEnv>, what: string): string {
  const key = env[REVIEW_KEY_VARIABLE] ?? '';
  if (key === '')
    throw new UsageError(
      `${what} needs the key of temper review in ${REVIEW_KEY_VARIABLE}, which is not set; ${EXPORT_KEY}, for both commands`,
    );
  checkReviewKey(key);
  return key;
}

const EXPORT_KEY = `export ${REVIEW_KEY_VARIABLE}="$(openssl rand -base64 32)"`;

function checkReviewKey(key: string): void {
  if (key.length >= LEAST_KEY_CHARACTERS) return;
  throw new UsageError(
    `${REVIEW_KEY_VARIABLE} must have at least ${LEAST_KEY_CHARACTERS} characters (links are signed with it), got ${key.length}; ${EXPORT_KEY}`,
  );
}
