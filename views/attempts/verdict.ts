/** Details beside an attempt's reward: the judge's words and score, rewards by name and role, the agent's own reward. */
import { REVIEW } from '../../core/rules/external-rewards.ts';
import { toRewardMetrics } from '../../core/rules/named-rewards.ts';
import type { AttemptRecord, Judged } from '../../store/records/groups/trajectories.ts';

export interface VerdictDetails {
  readonly explanation: string | null;
  readonly scores: Readonly<Record<string, number>>;
  readonly givenMetrics: Readonly<Record<string, number>>;
}

export const NO_VERDICT: VerdictDetails = { explanation: null, scores: {}, givenMetrics: {} };

/** `index`: among the attempts of its group. */
export function verdictOf(
  { reward, roleRewards }: AttemptRecord,
  judged: Judged | null,
  index: number,
): VerdictDetails {
  const roles = judged?.roleRewards?.[index] ?? roleRewards ?? {};
  const byRole = Object.entries(roles).map(([role, value]) => [`role/${role}`, value] as const);
  if (judged === null || judged.judge === 'agent') return { ...NO_VERDICT, scores: Object.fromEntries(byRole) };
  return {
    explanation: judged.explanations[index] ?? null,
    scores: { ...scoresIn(reward, judged, index), ...Object.fromEntries(byRole) },
    givenMetrics: judged.givenMetrics?.[index] ?? {},
  };
}

function scoresIn(reward: number | null, { judge, scores, namedRewards }: Judged, index: number) {
  const named = namedRewards?.[index] ?? null;
  const known: (readonly [string, number | null])[] = [
    [judge === REVIEW ? 'reviewScore' : 'rulerScore', scores?.[index] ?? null],
    // With names, it is among them already.
    ['agentReward', named === null ? reward : null],
  ];
  const numbers = known.filter((entry): entry is readonly [string, number] => entry[1] !== null);
  return { ...toRewardMetrics(named ?? {}), ...Object.fromEntries(numbers) };
}
