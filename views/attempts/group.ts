/** The attempts of one group, or of one evaluation, side by side. */
import { listGroups } from '../../store/records/groups/group-files.ts';
import { readPrepared, streamStoredScenarios } from '../../store/records/runs/run-reader.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import { sampleEvenly } from '../../core/numbers/statistics.ts';
import type { AttemptView, GroupView, JudgeView } from '../api/attempt-views.ts';
import type { GroupBounds, ViewContext } from '../context/context.ts';
import { readBefore, withBefore } from './before.ts';
import { groupRow, rowsOf } from './group-row.ts';
import { attemptIdOf, groupIdOf, neighboursOf, NO_NEIGHBOURS, parsePlayId, titleOf, type PlayPlace } from './place.ts';
import { requirePlayed, type PlayedRecords } from './read-played.ts';
import { findSampler, findUse, readRunInStore, type GroupUse, type RunInStore } from './step-facts.ts';
import { verdictOf } from './verdict.ts';
import { viewAttempt, type AttemptFacts } from './view-attempt.ts';
import { readJudgeQuestions, type JudgeQuestion } from '../../store/records/judging/verdicts.ts';
import { conversationOf } from '../../store/records/judging/conversation.ts';
import { planQuestion } from '../../store/records/judging/prompt.ts';
import { viewMessage } from './messages.ts';

const SIDE_BY_SIDE: GroupBounds = {
  attempts: 64,
  calls: 200,
  textLength: 20_000,
  promptLength: 500_000,
  total: 8_000_000,
};

export async function viewGroupOf(
  { store, groupBounds: bounds = SIDE_BY_SIDE }: ViewContext,
  run: string,
  id: string,
): Promise<GroupView> {
  const place = parsePlayId(run, id);
  const facts = await readRunInStore({ store }, run);
  const played = await requirePlayed(store, place);
  const { rollouts, givenRows } = played;
  const group = await describeGroup(store, facts, played);
  const [before, scenarioValue, neighbours, judge] = await Promise.all([
    readBefore(store, played),
    readScenario(store, run, rollouts.header.scenario),
    findNeighbours(store, place),
    viewJudge(store, played, bounds.promptLength),
  ]);
  const attempts: AttemptView[] = [];
  let room = bounds.total;
  const order = indexesIn(place.kind === 'eval' ? 'reward' : 'play', group.rows);
  for (const index of sampleEvenly(order, bounds.attempts)) {
    const view = viewAttempt(rollouts.attempts[index]!, factsOf(group, played, index), bounds);
    // An answer of many megabytes helps nobody: the attempts beyond have pages of their own.
    room -= JSON.stringify(view).length;
    if (room < 0 && attempts.length > 0) break;
    attempts.push(withBefore(view, before.get(view.row.attempt)));
  }
  return {
    run: facts.run,
    id: groupIdOf(place),
    title: titleOf(place),
    row: place.kind === 'group' ? groupRow(place, played, group.rows) : null,
    scenario: rollouts.header.scenarioId ?? '',
    scenarioValue,
    attempts,
    judge,
    comparisons: givenRows.filter(({ kind }) => kind === 'comparison').length,
    leftOut: rollouts.attempts.length - attempts.length,
    neighbours,
  };
}

/** By reward, the lowest comes first: an evaluation is read for what went wrong. */
type Order = 'play' | 'reward';

function indexesIn(order: Order, rows: DescribedGroup['rows']): number[] {
  const indexes = rows.map((_, index) => index);
  if (order === 'play') return indexes;
  return indexes.toSorted((one, other) => {
    const [left, right] = [rows[one]!.reward, rows[other]!.reward];
    return Number(left !== null) - Number(right !== null) || (left ?? 0) - (right ?? 0);
  });
}

/** Numbers of groups may have gaps: a group that waits for its reward is in the store before those after it. */
async function findNeighbours(store: Store, place: PlayPlace): Promise<GroupView['neighbours']> {
  if (place.kind !== 'group') return NO_NEIGHBOURS;
  const groups = await listGroups(store, place);
  const idOf = (group: number | undefined): string | null =>
    group === undefined ? null : groupIdOf({ ...place, group });
  return {
    previous: idOf(groups.findLast((group) => group < place.group)),
    next: idOf(groups.find((group) => group > place.group)),
  };
}

/** Facts that its attempts have in common. */
export interface DescribedGroup {
  readonly rows: ReturnType<typeof rowsOf>;
  readonly policy: string | null;
  readonly decided: GroupUse | null;
}

export async function describeGroup(store: Store, facts: RunInStore, played: PlayedRecords): Promise<DescribedGroup> {
  const { place, rollouts } = played;
  const decided = place.kind === 'group' ? await findUse(store, facts, place) : null;
  const { replay, adapterSha256 } = rollouts.header;
  const policy = replay?.model ?? (await findSampler(store, facts, sampledUpTo(place), adapterSha256));
  return { rows: rowsOf(facts, played, decided), policy, decided };
}

/** An evaluation is played by the step's own policy, a group by one before it. */
function sampledUpTo(place: PlayPlace): { branch: number; step: number } {
  return { branch: place.branch, step: place.kind === 'group' ? place.step - 1 : place.step };
}

export function factsOf({ rows, policy }: DescribedGroup, played: PlayedRecords, index: number): AttemptFacts {
  const { place, rollouts, judged, times, givenRows } = played;
  const record = rollouts.attempts[index]!;
  const name = attemptIdOf(place, record.attempt);
  return {
    row: rows[index]!,
    title: attemptTitle(place, record, name),
    times,
    givenRows,
    adapterSha256: rollouts.header.adapterSha256,
    policy,
    neighbours: neighboursOf(place, rollouts.attempts, index),
    ...verdictOf(record, judged, index),
  };
}

function attemptTitle(place: PlayPlace, { scenarioId }: AttemptRecord, name: string): string {
  if (place.kind === 'replay') return titleOf(place);
  return place.kind === 'group' ? `attempt ${name}` : (scenarioId ?? name);
}

const MAX_SCENARIO = 200_000;

async function readScenario(store: Store, run: string, index: number | undefined): Promise<unknown> {
  const prepared = index === undefined ? null : await readPrepared(store, run);
  if (prepared === null || index === undefined || (await store.blobBytes(prepared.scenarios)) === null) return null;
  for await (const { scenario } of streamStoredScenarios(store, prepared, index, index + 1)) {
    const text = JSON.stringify(scenario) ?? 'null';
    return text.length <= MAX_SCENARIO
      ? scenario
      : `${text.slice(0, MAX_SCENARIO)} … (${text.length - MAX_SCENARIO} more characters)`;
  }
  return null;
}

/** Null: the rewards are the agent's own. */
export async function viewJudge(
  store: Store,
  { place, rollouts, judged }: PlayedRecords,
  promptLength: number,
): Promise<JudgeView | null> {
  if (place.kind !== 'group' || judged === null || judged.judge === 'agent') return null;
  const { judge, scores, rewards, explanations, verdict = null } = judged;
  const found = await readJudgeQuestions(store, place);
  // A verdict that another run paid for has no answers here.
  const isMissing = verdict !== null && !found.some(({ key }) => key === verdict);
  const all = isMissing ? [...found, { key: verdict, asked: null, answers: [] }] : found;
  // The question whose verdict counts comes last, as it was asked last.
  const inOrder = all.toSorted((one, other) => Number(one.key === verdict) - Number(other.key === verdict));
  return {
    judge,
    questions: inOrder.map((question) => viewQuestion(question, rollouts.attempts, promptLength)),
    scores: scores ?? rewards,
    explanations,
  };
}

/** The prompt is made from the attempts again: it is the one that was asked if its hash is the question's. */
function viewQuestion(
  { key, asked, answers }: JudgeQuestion,
  attempts: readonly AttemptRecord[],
  promptLength: number,
): Question {
  const data = attempts.filter(({ status }) => status === 'ok');
  const planned = asked && planQuestion({ ...asked, conversations: data.map(conversationOf) });
  const messages = planned?.key === key && asked !== null ? planned.messages(asked.maxChars) : null;
  return {
    messages: messages === null ? null : messages.map((message) => viewMessage({ ...message }, promptLength)),
    answers: answers.map(({ text, promptTokens, completionTokens, usd, complaint = null }) => ({
      text,
      tokens: promptTokens + completionTokens,
      usd,
      complaint,
    })),
  };
}

type Question = JudgeView['questions'][number];
