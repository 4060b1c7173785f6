/** Updates of a running workflow, each with the sentence that says what came of it: for commands and for `temper ui`. */
import { describeChange } from '../../core/settings.ts';
import { pauseUpdate, resumeUpdate, setUpdate, stopUpdate } from '../../workflows/messages.ts';
import { parseSettings } from './parse-settings.ts';
import { steerRun, type SteeredPlace } from './steer-run.ts';

/** Temporal answers the same request again from the run's history: also to a caller that has been restarted since. */
type RequestId = string | undefined;

function updateIdOf(requestId: RequestId): { updateId?: string } {
  return requestId === undefined ? {} : { updateId: requestId };
}

export async function pauseRun(
  place: SteeredPlace,
  run: string,
  reason: string | null,
  requestId?: RequestId,
): Promise<string> {
  const { first, afterStep, since } = await steerRun(place, run, (handle) =>
    handle.executeUpdate(pauseUpdate, { args: [{ reason }], ...updateIdOf(requestId) }),
  );
  const told = first ? `${run} pauses after step ${afterStep}` : `${run} has been paused since ${since}`;
  return `${told}; continue it with temper resume ${run}`;
}

export async function resumeRun(place: SteeredPlace, run: string, requestId?: RequestId): Promise<string> {
  const { first } = await steerRun(place, run, (handle) => handle.executeUpdate(resumeUpdate, updateIdOf(requestId)));
  return first ? `${run} continues` : `${run} is not paused`;
}

export async function stopRun(
  place: SteeredPlace,
  run: string,
  reason: string | null,
  requestId?: RequestId,
): Promise<string> {
  const { first, afterStep } = await steerRun(place, run, (handle) =>
    handle.executeUpdate(stopUpdate, { args: [{ reason }], ...updateIdOf(requestId) }),
  );
  return `${run} ${first ? 'stops' : 'is already stopping'} after step ${afterStep}`;
}

/** `texts`: `KEY=VALUE`. */
export async function setRun(
  place: SteeredPlace,
  run: string,
  texts: readonly string[],
  reason: string | null,
  requestId?: RequestId,
): Promise<string[]> {
  const settings = parseSettings(texts, { prefix: '', help: 'temper set --help' });
  const { changes } = await steerRun(place, run, (handle) =>
    handle.executeUpdate(setUpdate, { args: [{ settings, reason }], ...updateIdOf(requestId) }),
  );
  if (changes.length === 0) return [`${run} has ${texts.join(' ')} already`];
  return changes.map((change) => `${run}: ${describeChange(change)}`);
}
