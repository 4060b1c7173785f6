/** Reads the attempts that a report shows: some steps, some groups of each, and the first games of the evaluations. */
import type { RunState } from '../../core/contract.ts';
import { formatAttemptId } from '../../core/attempt-id.ts';
import { isAwaited, REVIEW } from '../../core/external-rewards.ts';
import { branchOfStep } from '../../core/lineage.ts';
import { toRewardMetrics } from '../../core/named-rewards.ts';
import { mean } from '../../core/statistics.ts';
import type { StepPlace } from '../../store/layout.ts';
import { giftsOf, readGiven, type Gift } from '../../store/records/given-rewards.ts';
import { readEvalRollouts, readGroups, type PlayedGroup } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { AttemptRecord, Judged } from '../../store/records/trajectories.ts';
import { plural } from '../terminal/format.ts';
import { NO_VERDICT, viewAttempt, type Rewards } from './attempt-view.ts';
import { BOUNDS, clipText, sampleEvenly, type AttemptSet, type GroupView } from './data.ts';

export interface ReadAttempts {
  readonly sets: readonly AttemptSet[];
  /** Sentences that say what was left out. */
  readonly leftOut: readonly string[];
}

type ReadSet = (store: Store, place: StepPlace) => Promise<AttemptSet | null>;

export async function readAttempts(
  store: Store,
  { run, lineage, step: finished, evals, awaited = null }: RunState,
): Promise<ReadAttempts> {
  // Attempts that wait for a reward are shown, too.
  const last = awaited?.step ?? finished;
  const steps = sampleEvenly(
    Array.from({ length: last }, (_, index) => index + 1),
    BOUNDS.steps,
  );
  const evaluated = sampleEvenly(
    evals.map((evaluation) => evaluation.step),
    BOUNDS.steps,
  );
  const leftOut =
    steps.length < last ? [`This page shows the attempts of ${plural(steps.length, 'step')} out of ${last}.`] : [];
  const places: { name: string; step: number; read: ReadSet }[] = [
    ...evaluated.map((step) => ({ name: `evaluation after step ${step}`, step, read: readEvaluation })),
    ...steps.map((step) => ({ name: `step ${step}`, step, read: readStep })),
  ];
  const sets: AttemptSet[] = [];
  let room: number = BOUNDS.total;
  for (const { name, step, read } of places) {
    const set = await read(store, { run, branch: branchOfStep(lineage, step), step });
    const size = set === null ? 0 : JSON.stringify(set).length;
    if (set !== null && size <= room) sets.push(set);
    else
      leftOut.push(
        `The attempts of ${name} are not shown: ${set === null ? 'the store has no copy of them' : 'they are too large'}.`,
      );
    room -= size <= room ? size : 0;
  }
  return { sets: sets.toSorted((a, b) => a.step - b.step || b.kind.localeCompare(a.kind)), leftOut };
}

async function readStep(store: Store, place: StepPlace): Promise<AttemptSet | null> {
  const groups = await readGroups(store, place);
  if (groups.length === 0) return null;
  const shown = groups.slice(0, BOUNDS.groupsPerStep);
  const leftOut = shown.length < groups.length ? `${shown.length} of ${groups.length} groups are shown` : null;
  const given = await Promise.all(shown.map((group) => readGivenTo(store, place, group)));
  const views = shown.map((group, index) => viewGroup(place, group, given[index] ?? []));
  return { kind: 'step', step: place.step, groups: views, leftOut };
}

/** Rewards from outside, as far as the group may have any. */
async function readGivenTo(store: Store, place: StepPlace, { group, judged }: PlayedGroup): Promise<Gift[]> {
  if (judged !== null && !isAwaited(judged.judge)) return [];
  return giftsOf(await readGiven(store, { ...place, group }));
}

function viewGroup({ branch, step }: StepPlace, { group, rollouts, judged }: PlayedGroup, gifts: Gift[]): GroupView {
  const rewards = judged?.rewards ?? rollouts.attempts.map(({ reward }) => reward);
  const average = mean(rewards.filter((reward) => reward !== null));
  const shown = rollouts.attempts.slice(0, BOUNDS.attemptsPerGroup);
  return {
    title: `group ${group}`,
    scenario: clipText(rollouts.header.scenarioId ?? '', 200),
    attempts: shown.map((record, index) =>
      viewAttempt(record, `attempt ${formatAttemptId({ branch, step, group, attempt: record.attempt })}`, {
        own: rewards[index] ?? null,
        mean: average,
        ...viewVerdict(record, judged, index),
        ...viewGiven(gifts, record.attempt),
      }),
    ),
  };
}

/** Details beside the reward: the judge's words and score, rewards by name, and the agent's own reward, if they differ from it. */
function viewVerdict(
  { reward }: AttemptRecord,
  judged: Judged | null,
  index: number,
): Pick<Rewards, 'explanation' | 'judged'> {
  if (judged === null || judged.judge === 'agent') return NO_VERDICT;
  const score = judged.scores?.[index] ?? null;
  const numbers = [
    [judged.judge === REVIEW ? 'reviewScore' : 'rulerScore', score],
    ['agentReward', judged.namedRewards ? null : reward],
  ] as const;
  return {
    explanation: judged.explanations[index] ?? null,
    judged: {
      ...toRewardMetrics(judged.namedRewards?.[index] ?? {}),
      ...Object.fromEntries(numbers.filter((entry): entry is [(typeof entry)[0], number] => entry[1] !== null)),
    },
  };
}

/** Rewards with giver, time and reason, oldest first; nothing if nobody gave one. */
function viewGiven(gifts: readonly Gift[], attempt: number): Partial<Pick<Rewards, 'explanation'>> {
  const lines = gifts.flatMap((gift) => {
    if (gift.kind !== 'reward' || gift.attempt !== attempt) return [];
    const metrics = Object.entries(gift.metrics ?? {}).map(([name, value]) => `, ${name} ${value}`);
    const note = gift.note === null ? '' : `: ${gift.note}`;
    return [`given ${gift.reward}${metrics.join('')} by ${gift.by ?? 'somebody'}, ${gift.at}${note}`];
  });
  return lines.length === 0 ? {} : { explanation: lines.join('\n') };
}

async function readEvaluation(store: Store, place: StepPlace): Promise<AttemptSet | null> {
  const attempts = (await readEvalRollouts(store, place))?.attempts;
  if (attempts === undefined) return null;
  const shown = attempts.slice(0, BOUNDS.evalGames);
  const views = shown.map((record) =>
    viewAttempt(record, record.scenarioId ?? String(record.attempt), { own: record.reward, mean: null, ...NO_VERDICT }),
  );
  const leftOut = shown.length < attempts.length ? `the first ${shown.length} of ${attempts.length} are shown` : null;
  return {
    kind: 'eval',
    step: place.step,
    groups: [{ title: 'held-out scenarios', scenario: '', attempts: views }],
    leftOut,
  };
}
