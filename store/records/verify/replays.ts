/** Checks what is beside a run's steps: replays, with the attempts that they were made of, and recordings. */
import { parseAttemptId } from '../../../core/names/attempt-id.ts';
import { evalRolloutsKey, recordingChunkPrefix, replayKey, rolloutsKey } from '../../layout.ts';
import { hashBytes } from '../../bytes/sha256.ts';
import type { Store } from '../../store.ts';
import { listChunks, readChunk } from '../production/recordings.ts';
import { listReplays, readReplay } from '../groups/replays.ts';
import type { Findings } from './findings.ts';

export async function verifyReplays(store: Store, run: string, findings: Findings): Promise<void> {
  for (const id of await listReplays(store, run)) {
    const key = replayKey(run, id);
    findings.count('rollouts');
    const replay = await findings.attempt('rollouts', key, () => readReplay(store, run, id));
    if (replay === null) continue;
    const { attempt, rolloutsSha256 } = replay.header.replay;
    const origin = originKey(run, attempt);
    const bytes = origin === null ? null : await store.read(origin);
    // Missing: that of a step in progress is not copied with the run.
    if (bytes !== null && hashBytes(bytes) !== rolloutsSha256)
      findings.problem('rollouts', key, `the attempt ${attempt} that it was made of is not the recorded one`);
  }
}

/** Recordings of `temper serve` under the run's name, which are the only copy. */
export async function verifyRecordings(store: Store, run: string, findings: Findings): Promise<void> {
  for (const chunk of await listChunks(store, run)) {
    const key = recordingChunkPrefix(run, chunk);
    findings.count('rollouts');
    let damaged = 0;
    const onDamage = (_chunk: string, bytes: number): void => void (damaged += bytes);
    await findings.attempt('rollouts', key, () => readChunk(store, run, chunk, { onDamage }));
    if (damaged > 0) findings.problem('rollouts', key, `${damaged} bytes of it are damaged`, COPIED_BY_HAND);
  }
}

const COPIED_BY_HAND = 'restore the folder from a copy';

function originKey(run: string, attempt: string): string | null {
  const id = parseAttemptId(attempt);
  if (id === null) return null;
  return id.group === null ? evalRolloutsKey({ run, ...id }) : rolloutsKey({ run, ...id, group: id.group });
}
