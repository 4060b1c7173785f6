/** Address and key of `temper serve`, and whether and how it records: checked before anything is started. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { FEEDBACK_KEY_VARIABLE, SERVE_KEY_VARIABLE } from '../../core/names/door-keys.ts';
import { DEFAULT_SERVE_PORT, type ServeContext } from './command.ts';
import { KEY_BYTES, planKeyedPlace, type KeyedPlace } from '../command-line/keyed-place.ts';

export function planServe(context: Pick<ServeContext, 'flags' | 'env' | 'output'>): KeyedPlace {
  const keyed = { command: 'temper serve', keyVariable: SERVE_KEY_VARIABLE, defaultPort: DEFAULT_SERVE_PORT };
  return planKeyedPlace(keyed, context);
}

export interface RecordingPlan {
  /** Share of the conversations, from 0 to 1. */
  readonly share: number;
  /** Null: for ever. */
  readonly days: number | null;
  /** Module with the redaction; null: none. */
  readonly redact: string | null;
  /** Opens feedback; null: nothing does. */
  readonly feedbackKey: string | null;
  /** It was made for this start, and nobody knows it yet. */
  readonly isNewKey: boolean;
}

/** Null: nothing is recorded. */
export function planRecording(
  { flags, env, cwd, output }: Pick<ServeContext, 'flags' | 'env' | 'cwd' | 'output'>,
  { key }: Pick<KeyedPlace, 'key'>,
): RecordingPlan | null {
  if (!flags.record) return null;
  const redact = flags.redact === null ? null : resolve(cwd, flags.redact);
  if (redact !== null && !existsSync(redact)) throw badConfig(`--redact ${redact} must be a file; pass its path`);
  const given = env[FEEDBACK_KEY_VARIABLE] || null;
  if (given === key)
    throw badConfig(
      `${FEEDBACK_KEY_VARIABLE} must be another key than that of the model (it opens feedback alone); choose another one`,
    );
  const isNewKey = given === null && output.isTerminal && !flags.json;
  const feedbackKey = isNewKey ? randomBytes(KEY_BYTES).toString('base64url') : given;
  return { share: flags['record-share'] ?? 1, days: flags['record-days'], redact, feedbackKey, isNewKey };
}
