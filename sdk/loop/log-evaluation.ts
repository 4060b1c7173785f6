/** `model.log`: gathered groups as the evaluation after a step, where people look for it. */
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { summariseEval } from '../../store/records/groups/eval-result.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { evalKey, evalRolloutsKey } from '../../store/layout.ts';
import { parseRollouts } from '../../store/records/groups/group-files.ts';
import { encodeRollouts, type AttemptRecord } from '../../store/records/groups/trajectories.ts';
import { withRewards } from './attempt-trajectories.ts';
import { findOrigin, requireGathered, type GivenGroup, type StoredGroup } from './gathered-group.ts';
import type { LoopRun } from './loop-run.ts';
import { addEval, writeState } from './loop-state.ts';
import type { TrajectoryGroup } from './trajectory-group.ts';

/** Write-once for each step; the same groups again are found. */
export async function logEvaluation(run: LoopRun, groups: readonly TrajectoryGroup[], split: string): Promise<void> {
  if (split !== 'val') throw unknownSplit(split);
  const given = groups.map((group) => findOrigin(run, group, 'val'));
  const [step, ...others] = new Set(given.map(({ origin }) => origin.step));
  if (step === undefined || others.length > 0) throw notOneStep(given.length);
  const stored = await Promise.all(given.map(({ origin }) => requireGathered(run, origin)));
  const attempts = stored.flatMap((group, index) => readAttempts(group, given[index]!));
  const numbered = attempts.map((record, attempt) => ({ ...record, attempt }));
  const rewards = numbered.map(({ reward }) => reward);
  const inputsSha256 = hashOf({ groups: stored.map(({ sha256 }) => sha256), rewards });
  const place = { run: run.name, branch: 0, step };
  const adapterSha256 = stored[0]?.rollouts.header.adapterSha256 ?? null;
  const header = { schema: 1 as const, inputsSha256, branch: 0, step, adapterSha256, attempts: numbered.length };
  const { bytes } = await run.store.publish(
    evalRolloutsKey(place),
    await encodeRollouts({ header, attempts: numbered }),
  );
  const { rollouts: kept, sha256 } = await parseRollouts(bytes, evalRolloutsKey(place));
  if (kept.header.inputsSha256 !== inputsSha256) throw loggedBefore(run, step);
  const result = summariseEval(step, kept.attempts, sha256);
  await run.store.publish(evalKey(place), encodeJson({ schema: 1, inputsSha256, ...result }));
  addEval(run, result);
  await writeState(run, {});
}

/** An attempt that the script took out is none of the evaluation. */
function readAttempts({ rollouts, place }: StoredGroup, { byAttempt }: GivenGroup): AttemptRecord[] {
  const { scenarioId = String(place.group) } = rollouts.header;
  return rollouts.attempts.flatMap(({ attempt, ...record }) => {
    const trajectories = byAttempt.get(attempt) ?? [];
    if (trajectories.length === 0 && record.status === 'ok') return [];
    return [{ attempt, scenario: place.group, scenarioId, ...withRewards(record, trajectories) }];
  });
}

function unknownSplit(split: string): TemperError {
  return badConfig(
    `model.log records evaluations and takes only the split val, got ${JSON.stringify(split)}; training groups are recorded when you gather them`,
  );
}

function notOneStep(groups: number): TemperError {
  const found = groups === 0 ? 'none' : 'groups of several steps';
  return badConfig(`model.log must be given groups gathered after one step, got ${found}`);
}

function loggedBefore({ name }: LoopRun, step: number): TemperError {
  return new TemperError(
    'StepConflict',
    `the evaluation of ${name} after step ${step} is already in the store, made from other groups; log all groups of a step at once`,
  );
}
