/** Replays: attempts that were played anew from one of their turns on, beside the recorded ones. */
import { TemperError } from '../../../core/contract/failures.ts';
import { replayKey, replaysPrefix } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { childNames } from '../children.ts';
import { AttemptSchema, parseStored, RolloutHeaderSchema } from '../file-schemas.ts';
import {
  decodeRollouts,
  encodeRollouts,
  type AttemptRecord,
  type ReplayOrigin,
  type RolloutHeader,
} from './trajectories.ts';

export interface StoredReplay {
  readonly id: string;
  readonly header: RolloutHeader & { readonly replay: ReplayOrigin };
  /** Its calls are in the order in which the agent asked. */
  readonly record: AttemptRecord;
}

export interface NewReplay {
  /** Hash of what it was made of: the same inputs have the same id. */
  readonly inputsSha256: string;
  readonly header: Omit<StoredReplay['header'], 'schema' | 'inputsSha256' | 'attempts'>;
  readonly record: AttemptRecord;
}

const ENDING = '.rollouts.jsonl.gz';
const HASH_CHARACTERS = 8;
/** `0.3.2.5.t1.0a1b2c3d`; a hosted model answers otherwise each time, so that its second one ends in `-2`. */
const REPLAY_ID = /^(?:eval\.)?\d+(?:\.\d+){2,3}\.t\d+\.[0-9a-f]{8}(?:-[1-9]\d*)?$/;

export function isReplayId(text: string): boolean {
  return REPLAY_ID.test(text);
}

/** Id of the first replay with these inputs. */
export function replayId({ inputsSha256, header }: Pick<NewReplay, 'inputsSha256' | 'header'>): string {
  const { attempt, fromCall } = header.replay;
  return `${attempt}.t${fromCall}.${inputsSha256.slice(0, HASH_CHARACTERS)}`;
}

/** Write-once: a second writer of the same inputs gets the first one's replay, unless each is its own. */
export async function publishReplay(
  store: Store,
  run: string,
  replay: NewReplay,
  isRepeatable: boolean,
): Promise<StoredReplay> {
  const { inputsSha256, header, record } = replay;
  const first = replayId(replay);
  const whole = { ...header, schema: 1, inputsSha256, attempts: 1 } as const;
  const encoded = await encodeRollouts({ header: whole, attempts: [record] });
  for (let number = 1; ; number += 1) {
    const id = number === 1 ? first : `${first}-${number}`;
    const { created, bytes } = await store.publish(replayKey(run, id), encoded);
    if (created || isRepeatable) return parseReplay(bytes, run, id);
  }
}

/** Null if there is none. */
export async function readReplay(store: Store, run: string, id: string): Promise<StoredReplay | null> {
  const bytes = isReplayId(id) ? await store.read(replayKey(run, id)) : null;
  return bytes === null ? null : parseReplay(bytes, run, id);
}

/** Ids of the replays of a run, or of one of its attempts, in the order of their names. */
export async function listReplays(store: Store, run: string, attempt: string | null = null): Promise<string[]> {
  const names = await childNames(store, replaysPrefix(run));
  const ids = names.flatMap((name) => (name.endsWith(ENDING) ? [name.slice(0, -ENDING.length)] : []));
  return ids.filter((id) => isReplayId(id) && (attempt === null || id.startsWith(`${attempt}.t`)));
}

async function parseReplay(bytes: Uint8Array, run: string, id: string): Promise<StoredReplay> {
  const key = replayKey(run, id);
  const { header, attempts } = await decodeRollouts(bytes, key);
  parseStored(RolloutHeaderSchema, header, key);
  const [record, ...others] = attempts;
  const { replay } = header;
  if (replay === undefined || record === undefined || others.length > 0)
    throw new TemperError('StoreCorrupt', `${key} must hold one replay, but it does not; restore it from a copy`);
  parseStored(AttemptSchema, record, key);
  return { id, header: { ...header, replay }, record };
}
