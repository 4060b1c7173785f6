/** Updates of a running workflow, each with the sentence that says what came of it: for commands and for `temper ui`. */
import { describeChange } from '../../core/settings.ts';
import { pauseUpdate, resumeUpdate, setUpdate, stopUpdate } from '../../workflows/messages.ts';
import { parseSettings } from './parse-settings.ts';
import { steerRun, type SteeredPlace } from './steer-run.ts';

export async function pauseRun(place: SteeredPlace, run: string, reason: string | null): Promise<string> {
  const { first, afterStep, since } = await steerRun(place, run, (handle) =>
    handle.executeUpdate(pauseUpdate, { args: [{ reason }] }),
  );
  const told = first ? `${run} pauses after step ${afterStep}` : `${run} has been paused since ${since}`;
  return `${told}; continue it with temper resume ${run}`;
}

export async function resumeRun(place: SteeredPlace, run: string): Promise<string> {
  const { first } = await steerRun(place, run, (handle) => handle.executeUpdate(resumeUpdate));
  return first ? `${run} continues` : `${run} is not paused`;
}

export async function stopRun(place: SteeredPlace, run: string, reason: string | null): Promise<string> {
  const { first, afterStep } = await steerRun(place, run, (handle) =>
    handle.executeUpdate(stopUpdate, { args: [{ reason }] }),
  );
  return `${run} ${first ? 'stops' : 'is already stopping'} after step ${afterStep}`;
}

/** `texts`: `KEY=VALUE`. */
export async function setRun(
  place: SteeredPlace,
  run: string,
  texts: readonly string[],
  reason: string | null,
): Promise<string[]> {
  const settings = parseSettings(texts, { prefix: '', help: 'temper set --help' });
  const { changes } = await steerRun(place, run, (handle) =>
    handle.executeUpdate(setUpdate, { args: [{ settings, reason }] }),
  );
  if (changes.length === 0) return [`${run} has ${texts.join(' ')} already`];
  return changes.map((change) => `${run}: ${describeChange(change)}`);
}
