/** Questions that a judge was asked about a group, and its answers. */
import { readJudgeQuestions, type JudgeQuestion } from '../../store/records/judge-questions.ts';
import { conversationOf } from '../../store/records/judging/conversation.ts';
import { planQuestion } from '../../store/records/judging/prompt.ts';
import type { AttemptRecord } from '../../store/records/trajectories.ts';
import type { Store } from '../../store/store.ts';
import type { JudgeView } from '../api/attempt-views.ts';
import { viewMessage } from './messages.ts';
import type { PlayedRecords } from './read-played.ts';

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
