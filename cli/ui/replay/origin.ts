/** The recorded attempt that a replay is made of. */
import { parseAttemptId } from '../../../core/names/attempt-id.ts';
import type { RolloutConfig } from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { configAt } from '../../../core/rules/settings.ts';
import type { Scenario } from '../../../play/agent.ts';
import { callName } from '../../../play/recorder/recorded-calls.ts';
import { hashBytes } from '../../../store/bytes/sha256.ts';
import { evalRolloutsKey, rolloutsKey, type StepPlace } from '../../../store/layout.ts';
import { readAllChanges } from '../../../store/records/runs/lineage.ts';
import {
  readEvalRollouts,
  readGroup,
  readPrepared,
  readStoredScenarios,
  requireRun,
  type RunFile,
} from '../../../store/records/runs/run-reader.ts';
import type { AttemptRecord, RolloutHeader } from '../../../store/records/groups/trajectories.ts';
import type { Store } from '../../../store/store.ts';

export interface ReplayedOrigin {
  readonly id: string;
  readonly file: RunFile;
  readonly place: StepPlace;
  /** Absent in an evaluation. */
  readonly group?: number;
  /** With its calls in the order in which the agent asked. */
  readonly record: AttemptRecord;
  readonly rolloutsSha256: string;
  readonly scenario: Scenario;
  readonly scenarioIndex: number;
  readonly rollout: RolloutConfig;
  readonly seed: number;
}

export async function findReplayed(store: Store, run: string, id: string): Promise<ReplayedOrigin> {
  const { file } = await requireRun(store, run);
  if (id.startsWith('replay.'))
    throw badConfig(
      `only a recorded attempt can be replayed, ${id.slice(0, 100)} is a replay itself; replay the attempt that it was made of`,
    );
  const found = await findRecord(store, run, id);
  if (found === null) throw badConfig(`the run ${run} has no attempt ${id.slice(0, 100)}; name one that was played`);
  const { place, header, record, key } = found;
  const scenarioIndex = record.scenario ?? header.scenario;
  const prepared = await readPrepared(store, run);
  const [line] =
    prepared === null || scenarioIndex === undefined
      ? []
      : await readStoredScenarios(store, prepared, scenarioIndex, scenarioIndex + 1);
  if (line === undefined || scenarioIndex === undefined)
    throw badConfig(
      `the scenario of the attempt ${id} is not in the store, so it cannot be played anew; choose an attempt of a run that has an agent file`,
    );
  const { changes } = await readAllChanges(store, run);
  const config = configAt(file.config, changes, place);
  const { group } = found;
  return {
    id,
    file,
    place,
    ...(group !== undefined && { group }),
    record,
    rolloutsSha256: hashBytes((await store.read(key))!),
    scenario: line.scenario as Scenario,
    scenarioIndex,
    rollout: config.rollout,
    seed: config.seed,
  };
}

interface FoundRecord {
  readonly place: StepPlace;
  readonly group?: number;
  readonly header: RolloutHeader;
  readonly record: AttemptRecord;
  readonly key: string;
}

async function findRecord(store: Store, run: string, id: string): Promise<FoundRecord | null> {
  const named = parseAttemptId(id);
  if (named === null) return null;
  const { branch, step, group } = named;
  const place = { run, branch, step };
  const rollouts =
    group === null
      ? await readEvalRollouts(store, place)
      : ((await readGroup(store, { ...place, group }))?.rollouts ?? null);
  const record = rollouts?.attempts.find(({ attempt }) => attempt === named.attempt);
  if (rollouts === null || record === undefined) return null;
  const { header } = rollouts;
  if (group === null) return { place, header, record, key: evalRolloutsKey(place) };
  return { place, group, header, record, key: rolloutsKey({ ...place, group }) };
}

/** Index of the first call that is asked anew: choices of one call stay together. */
export function firstNewCall({ id, record }: ReplayedOrigin, fromTurn: number): number {
  const { calls } = record;
  if (!Number.isInteger(fromTurn) || fromTurn < 0 || fromTurn >= calls.length)
    throw badConfig(
      `fromTurn must be a turn of the attempt ${id}, from 0 to ${calls.length - 1}, got ${fromTurn}; choose another turn`,
    );
  const name = callName(calls[fromTurn]!);
  return calls.findIndex((call) => callName(call) === name);
}
