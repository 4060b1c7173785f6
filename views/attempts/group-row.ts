/** A group as a row of its step. */
import { deviation, mean } from '../../core/numbers/statistics.ts';
import type { GroupPlace } from '../../store/layout.ts';
import type { AttemptRow, GroupRow } from '../api/attempt-views.ts';
import { attemptRows, groupUse } from '../rows/attempt-row.ts';
import { attemptIdOf } from './place.ts';
import type { PlayedRecords } from './read-played.ts';
import type { GroupUse, RunInStore } from './step-facts.ts';

/** `decided`: what a step's verdict says of it; null: not decided yet, or no group of training. */
export function rowsOf(facts: RunInStore, played: PlayedRecords, decided: GroupUse | null): AttemptRow[] {
  const { place, rollouts, judged, times } = played;
  const group = 'group' in place ? place.group : null;
  const use = useOf(facts, played, decided);
  const rows = attemptRows({ place, group, rollouts, judged, times, use });
  return rows.map((row) => ({ ...row, id: attemptIdOf(place, row.attempt) }));
}

function useOf(facts: RunInStore, { place, rollouts, judged, judgedSha256 }: PlayedRecords, decided: GroupUse | null) {
  if (place.kind !== 'group') return place.kind === 'replay' ? 'replay' : 'eval';
  if (decided !== null) return decided.use;
  const verdict = judged === null || judgedSha256 === null ? null : { judged, sha256: judgedSha256 };
  return groupUse({ config: facts.file.config, changes: facts.changes }, place, rollouts, verdict);
}

export function groupRow(
  place: GroupPlace,
  { rollouts, judged }: PlayedRecords,
  rows: readonly AttemptRow[],
): GroupRow {
  const rewards = rows.map(({ reward }) => reward);
  const known = rewards.filter((reward) => reward !== null);
  const use = rows[0]?.use ?? 'unjudged';
  return {
    branch: place.branch,
    step: place.step,
    group: place.group,
    scenario: rollouts.header.scenarioId ?? '',
    use: use === 'eval' || use === 'replay' ? 'trained' : use,
    rewards,
    mean: mean(known),
    deviation: deviation(known),
    failed: rollouts.attempts.filter(({ status }) => status === 'failed').length,
    truncated: rollouts.attempts.filter(({ truncated }) => truncated).length,
    sampledTokens: rows.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0),
    judge: judged === null || judged.judge === 'agent' ? null : judged.judge,
  };
}
