/** Checks the ledger of rewards that a group was given from outside, and that its verdict follows from it. */
import { canonicalJson } from '../../../core/text/hashes.ts';
import { givenKey, givenPrefix, judgedKey, type GroupPlace } from '../../layout.ts';
import { childNumbers } from '../children.ts';
import { givenIn, readGiven } from '../rewards/given-rewards.ts';
import { judgeByGiven, type GivenRules } from '../rewards/given-verdict.ts';
import type { StoredRollouts } from '../groups/group-files.ts';
import type { Judged } from '../groups/trajectories.ts';
import type { VerifyContext } from './context.ts';

/** `judged`: null if the group is not decided yet. */
export async function verifyGiven(
  { store, findings }: VerifyContext,
  place: GroupPlace,
  played: StoredRollouts,
  judged: Judged | null,
  rules: GivenRules,
): Promise<void> {
  const key = givenPrefix(place);
  const numbers = await childNumbers(store, key);
  if (numbers.some((number, index) => number !== index)) {
    const missing = numbers.findIndex((number, index) => number !== index);
    findings.problem('verdicts', givenKey(place, missing), 'it is missing, and later rows are there');
    return;
  }
  const rows = await findings.attempt('verdicts', key, () => readGiven(store, place));
  if (rows === null) return;
  const closed = rows.findIndex((row) => row.kind === 'closed');
  if (closed !== -1 && closed !== rows.length - 1)
    findings.problem('verdicts', givenKey(place, closed + 1), 'it was added after the group was decided');
  if (judged === null) return;
  if (closed === -1)
    findings.problem('verdicts', judgedKey(place), 'its group has no row that says when it was decided');
  else if (!hasSameValues(judgeByGiven(played, givenIn(rows), rules), judged))
    findings.problem('verdicts', judgedKey(place), 'its rewards are not those that were given');
}

function hasSameValues(expected: Judged, found: Judged): boolean {
  const [one, other] = [expected, found].map(
    ({ rewards, turnRewards = null, namedRewards = null, givenMetrics = null }) =>
      canonicalJson({ rewards, turnRewards, namedRewards, givenMetrics }),
  );
  return one === other;
}
