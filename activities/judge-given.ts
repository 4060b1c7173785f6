/**
 * `judgeGiven`: groups that wait for rewards from outside. Those that are complete, or whose time is over, are decided:
 * the ledger is closed first, so that whoever gives a reward knows whether it counts, and the verdict follows from it.
 */
import pLimit, { type LimitFunction } from 'p-limit';

import { JudgeGivenInput, type GroupResult, type JudgeGivenResult } from '../core/contract/contract.ts';
import { rolloutsKey, type GroupPlace } from '../store/layout.ts';
import { isClosed, readPlayedAt } from '../store/records/rewards/awaited-groups.ts';
import { GROUPS_AT_ONCE, WHOLE_GROUPS_AT_ONCE } from '../store/records/children.ts';
import { closeLedger, readGiven, type ClosedRow } from '../store/records/rewards/given-rewards.ts';
import { awaitedAttempts, judgeByGiven, missingAttempts } from '../store/records/rewards/given-verdict.ts';
import {
  publishVerdict,
  readRollouts,
  readVerdict,
  requireFile,
  type StoredRollouts,
  type StoredVerdict,
} from '../store/records/groups/group-files.ts';
import { summariseGroup } from '../store/records/groups/group-result.ts';
import { asActivity, checkInputs, type Scope } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

type AwaitedGroup = JudgeGivenInput['groups'][number];
type Waiting = JudgeGivenResult['waiting'][number];

/** A group that waited at the last look, when its ledger had so many rows. */
interface Seen {
  readonly rows: number;
  readonly inputsSha256: string;
  /** Temporal's run that asked: another one may be of a run that was deleted and started again under its name. */
  readonly asker: string;
  readonly waiting: Waiting;
}

/** About how many groups one answer decides, since Temporal takes up to 2 MiB. The rest is left for the next look. */
const DECIDED_AT_ONCE = 100;

export function createJudgeGivenActivities(dependencies: Dependencies) {
  const { store } = dependencies;
  /** Waiting groups by key. One whose ledger has no further row is not read again: each reward wakes the run. */
  const seen = new Map<string, Seen>();

  async function judgeGiven(input: JudgeGivenInput, scope: Scope): Promise<JudgeGivenResult> {
    const decided: GroupResult[] = [];
    const waiting: Waiting[] = [];
    let done = 0;
    scope.showDetail(() => ({ part: 'rewards', done, of: input.groups.length }));
    const limit = pLimit(GROUPS_AT_ONCE);
    const whole = pLimit(WHOLE_GROUPS_AT_ONCE);
    const looks = input.groups.map((awaited) =>
      limit(async () => {
        scope.signal.throwIfAborted();
        const looked = done < DECIDED_AT_ONCE ? await look(input, awaited, whole, scope.asker) : leftForLater(awaited);
        if ('use' in looked) done += 1;
        return looked;
      }),
    );
    for (const looked of await Promise.all(looks)) {
      if ('use' in looked) decided.push(looked);
      else waiting.push(looked);
    }
    return { decided, waiting };
  }

  async function look(
    input: JudgeGivenInput,
    awaited: AwaitedGroup,
    whole: LimitFunction,
    asker: string,
  ): Promise<GroupResult | Waiting> {
    const { step, group, branch = input.branch } = awaited;
    const place: GroupPlace = { run: input.run, branch, step, group };
    const key = rolloutsKey(place);
    const before = seen.get(key);
    const isSame = before?.inputsSha256 === awaited.inputsSha256 && before.asker === asker;
    if (isSame && awaited.over === undefined && (await readGiven(store, place, before.rows)).length === 0)
      return before.waiting;
    const looked = await whole(() => lookAt(dependencies, input, awaited, place));
    if ('waiting' in looked) seen.set(key, { ...looked, inputsSha256: awaited.inputsSha256, asker });
    else seen.delete(key);
    return 'waiting' in looked ? looked.waiting : looked;
  }

  return { judgeGiven: asActivity(dependencies, JudgeGivenInput, judgeGiven) };
}

/** A group from its files: its result, or how much it waits for, and the number of rows that this was read from. */
async function lookAt(
  dependencies: Dependencies,
  input: JudgeGivenInput,
  awaited: AwaitedGroup,
  place: GroupPlace,
): Promise<GroupResult | Pick<Seen, 'rows' | 'waiting'>> {
  const { store } = dependencies;
  const { step, group } = place;
  const { inputsSha256, over } = awaited;
  const key = rolloutsKey(place);
  const played = requireFile(await readRollouts(store, key), key);
  const { header, attempts } = played.rollouts;
  checkInputs(`group ${group} of step ${step} of the run ${input.run}`, header.inputsSha256, inputsSha256);
  const verdict = await readVerdict(store, place);
  if (verdict !== null) return summarise(input, awaited, played, verdict);
  const rows = await readGiven(store, place);
  const missing = missingAttempts(played.rollouts, rows, input.external).length;
  if (missing === 0 || isClosed(rows) || over !== undefined) {
    const reason = missing === 0 ? 'complete' : (over ?? 'timeout');
    return summarise(input, awaited, played, await decide(dependencies, input, place, reason, played));
  }
  const playedAt = await readPlayedAt(store, place);
  const waiting = { step, group, missing, attempts: awaitedAttempts(attempts).length, playedAt };
  return { rows: rows.length, waiting };
}

async function decide(
  { store, logger }: Dependencies,
  rules: JudgeGivenInput,
  place: GroupPlace,
  reason: ClosedRow['reason'],
  played: StoredRollouts,
): Promise<StoredVerdict> {
  const { givenRows, closed } = await closeLedger(store, place, reason);
  logger.info({ ...place, rewards: givenRows.length, reason: closed.reason }, 'decided');
  return publishVerdict(store, place, judgeByGiven(played, givenRows, rules));
}

function leftForLater({ step, group }: AwaitedGroup): Waiting {
  return { step, group, missing: 0, attempts: 0, playedAt: null };
}

function summarise(
  input: JudgeGivenInput,
  { step, group, scenario }: AwaitedGroup,
  { rollouts }: StoredRollouts,
  { judged, sha256 }: StoredVerdict,
): GroupResult {
  return summariseGroup({ ...input, step, group, scenario }, rollouts, judged, sha256);
}
