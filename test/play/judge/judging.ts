/** Conversations before a scripted judge, as the activity and the imperative API put them there. */
import type { Conversation } from '../../../store/records/judging/conversation.ts';
import { connectEngine } from '../../../play/connections/engine-connection.ts';
import { openJudge, type JudgePatience } from '../../../play/judge/ask-judge.ts';
import { judgeConversations, type Judgement } from '../../../play/judge/judge-conversations.ts';
import type { Clock } from '../../../play/connections/clock.ts';
import { createRuler, type RulerOptions } from '../../../sdk/ruler/create-ruler.ts';
import {
  forgetfulAnswers,
  forgetfulVerdicts,
  type Answers,
  type Verdicts,
} from '../../../store/records/judging/verdicts.ts';
import type { ChatMessage } from '../../../store/records/groups/trajectories.ts';
import { JUDGE_KEY, JUDGE_KEY_VARIABLE, type ScriptedJudge } from './scripted-judge.ts';

export const ENV = { [JUDGE_KEY_VARIABLE]: JUDGE_KEY };
export const TASK: ChatMessage[] = [
  { role: 'system', content: 'You are helpful.' },
  { role: 'user', content: 'Say something good.' },
];

/** An attempt that says one thing. */
export function saying(id: string, content: string): Conversation {
  return { id, messages: [...TASK, { role: 'assistant', content }] };
}

export function rulerFor({ url }: ScriptedJudge, options: Partial<RulerOptions> = {}) {
  return createRuler({
    judge: { baseUrl: url, model: 'scripted', keyVariable: JUDGE_KEY_VARIABLE },
    ...options,
  });
}

interface Setup {
  /** Reached as the run's own engine instead of as a provider. */
  onEngine?: boolean;
  options?: Partial<RulerOptions>;
  verdicts?: Verdicts;
  answers?: Answers;
  callTimeoutMs?: number;
  callRetryBudgetMs?: number;
  signal?: AbortSignal;
  waits?: string[];
  clock?: Clock;
}

export async function judge(
  scripted: ScriptedJudge,
  conversations: readonly Conversation[],
  setup: Setup = {},
): Promise<Judgement> {
  const engine = setup.onEngine ? connectEngine({ url: scripted.url, key: JUDGE_KEY }) : null;
  const ruler = rulerFor(scripted, { ...(engine && { judge: 'engine/scripted' }), ...setup.options });
  try {
    return await judgeConversations(conversations, {
      ...openJudge(ruler, engine && { connection: engine, adapterSha256: null }, ENV),
      model: 'scripted',
      verdicts: setup.verdicts ?? forgetfulVerdicts(),
      answers: setup.answers ?? forgetfulAnswers(),
      patience: patienceOf(setup),
    });
  } finally {
    await engine?.close();
  }
}

function patienceOf({
  callTimeoutMs = 5000,
  callRetryBudgetMs = 3000,
  signal,
  waits = [],
  clock,
}: Setup): JudgePatience {
  return {
    callTimeoutMs,
    callRetryBudgetMs,
    signal: signal ?? new AbortController().signal,
    checkFresh: () => undefined,
    outage: {
      began: (reason) => void waits.push(`began: ${reason}`),
      goesOn: (reason) => void waits.push(reason),
      ended: () => void waits.push('ended'),
    },
    ...(clock && { clock }),
  };
}
