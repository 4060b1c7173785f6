/** Warnings about a few attempts that would keep a run from learning, with what to change. */
import { hasNoVariance } from '../../core/numbers/statistics.ts';
import { wasCut } from '../../store/records/groups/trajectories.ts';
import { formatNumber, plural } from '../../core/reports/format.ts';
import { countReopened, countRows } from './rows.ts';
import type { TriedAttempt, TriedGroup } from './play.ts';

export function warningsOf(groups: readonly TriedGroup[]): string[] {
  const attempts = groups.flatMap((group) => group.attempts);
  const found = [
    failures(attempts),
    noSignal(groups),
    noCalls(attempts),
    ...missingMetrics(attempts),
    rewrittenHistories(attempts),
    reopenedTurns(attempts),
    cutAnswers(attempts),
    outgrown(attempts),
    otherReplays(attempts),
  ];
  return found.filter((warning) => warning !== null);
}

const isPlayed = ({ record }: TriedAttempt): boolean => record.status === 'ok';

function failures(attempts: readonly TriedAttempt[]): string | null {
  const failed = attempts.filter((attempt) => !isPlayed(attempt));
  const [first] = failed;
  if (first === undefined) return null;
  const at = first.thrownAt === null ? '' : ` (${first.thrownAt})`;
  return `${failed.length} of ${plural(attempts.length, 'attempt')} failed, the first with: ${first.record.failure?.message ?? 'no message'}${at}`;
}

function noSignal(groups: readonly TriedGroup[]): string | null {
  const rewards = groups.flatMap(({ attempts }) => comparedRewards(attempts)).filter((group) => group.length > 1);
  if (rewards.length === 0 || !rewards.every(hasNoVariance)) return null;
  const values = [...new Set(rewards.flat())].map((reward) => formatNumber(reward)).join(', ');
  return `the reward never varies: all attempts at a scenario earned the same (${values}), which gives no learning signal; choose scenarios that the model solves at times, begin with supervised steps (--warm-start) if it never gives a right answer, give credit for steps towards the goal, or play more --attempts`;
}

/** Rewards that a run would compare: those of the attempts, or with roles those of each. */
function comparedRewards(attempts: readonly TriedAttempt[]): number[][] {
  const ofRoles = attempts.flatMap(({ record: { roleRewards } }) => (roleRewards === undefined ? [] : [roleRewards]));
  if (ofRoles.length === 0) return [attempts.flatMap(({ record }) => record.reward ?? [])];
  const roles = new Set(ofRoles.flatMap((rewards) => Object.keys(rewards)));
  return [...roles].map((role) => ofRoles.flatMap((rewards) => rewards[role] ?? []));
}

function noCalls(attempts: readonly TriedAttempt[]): string | null {
  const silent = attempts.filter((attempt) => isPlayed(attempt) && attempt.asked.length === 0);
  if (silent.length === 0) return null;
  return `${plural(silent.length, 'attempt')} made no call to the model, so there is nothing to train; call it through what the rollout's context gives`;
}

function missingMetrics(attempts: readonly TriedAttempt[]): string[] {
  const played = attempts.filter(isPlayed);
  const names = new Set(played.flatMap(({ record }) => Object.keys(record.metrics)));
  return [...names].flatMap((name) => {
    const missing = played.filter(({ record }) => record.metrics[name] === undefined).length;
    if (missing === 0) return [];
    return `the metric ${name} is missing in ${missing} of ${plural(played.length, 'attempt')}, which biases its mean; report every metric on every attempt`;
  });
}

function rewrittenHistories(attempts: readonly TriedAttempt[]): string | null {
  const counts = attempts.map(({ record }) => countRows(record.calls));
  const rewritten = counts.reduce((sum, count) => sum + count.rewritten, 0);
  const continued = counts.reduce((sum, count) => sum + count.continued, 0);
  if (rewritten <= sumReopened(attempts) || continued > 0) return null;
  return `every turn rewrites its history: the tokens of ${plural(rewritten, 'call')} do not extend those of an earlier turn, so each becomes a training row of its own; append messages, and leave earlier ones as they were`;
}

function reopenedTurns(attempts: readonly TriedAttempt[]): string | null {
  const reopened = sumReopened(attempts);
  if (reopened === 0) return null;
  return `${plural(reopened, 'turn')} with a tool_choice end${reopened === 1 ? 's' : ''} a training row: the chat template opens such a turn otherwise than it writes it later, so the next call begins a new row; leave tool_choice out where the model calls the tool anyway, or accept longer steps`;
}

function sumReopened(attempts: readonly TriedAttempt[]): number {
  return attempts.reduce((sum, { record }) => sum + countReopened(record.calls), 0);
}

function cutAnswers(attempts: readonly TriedAttempt[]): string | null {
  const calls = attempts.flatMap(({ asked }) => asked);
  const cut = calls.filter(wasCut).length;
  if (cut === 0) return null;
  return `${cut} of ${plural(calls.length, 'answer')} ${cut === 1 ? 'was' : 'were'} cut at the token limit, and a run masks such attempts; raise max_tokens, or ask for shorter answers`;
}

function outgrown(attempts: readonly TriedAttempt[]): string | null {
  const grown = attempts.filter(({ record, asked }) => record.truncated && !asked.some(wasCut)).length;
  if (grown === 0) return null;
  return `${plural(grown, 'attempt')} outgrew the model's context, and a run masks such attempts; shorten the conversation`;
}

function otherReplays(attempts: readonly TriedAttempt[]): string | null {
  const other = attempts.flatMap(({ replay }) => replay ?? []);
  if (other.length === 0) return null;
  return `${plural(other.length, 'attempt')} did something else when it was replayed, so a retry would pay for answers again; use random(), once() and label(). The first: ${other[0]}`;
}
