/** Conversations before a scripted judge, as the activity and the imperative API put them there. */
import type { Conversation } from '../../../play/judge/conversation.ts';
import { connectHosted } from '../../../play/judge/judge-client.ts';
import type { Judgement } from '../../../play/judge/judge-conversations.ts';
import { judgeConversations } from '../../../play/judge/judge-conversations.ts';
import { createRuler, type RulerOptions } from '../../../sdk/ruler/create-ruler.ts';
import { forgetfulAnswers, forgetfulVerdicts, type Answers, type Verdicts } from '../../../store/records/verdicts.ts';
import type { ChatMessage } from '../../../store/records/trajectories.ts';
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
  options?: Partial<RulerOptions>;
  verdicts?: Verdicts;
  answers?: Answers;
  callTimeoutMs?: number;
  callRetryBudgetMs?: number;
  signal?: AbortSignal;
  waits?: string[];
}

export function judge(
  scripted: ScriptedJudge,
  conversations: readonly Conversation[],
  setup: Setup = {},
): Promise<Judgement> {
  const ruler = rulerFor(scripted, setup.options);
  if (ruler.judge.kind !== 'hosted') throw new Error('a scripted judge is a hosted one');
  const waits = setup.waits ?? [];
  return judgeConversations(conversations, {
    ruler,
    judge: connectHosted(ruler, ruler.judge, ENV),
    model: 'scripted',
    verdicts: setup.verdicts ?? forgetfulVerdicts(),
    answers: setup.answers ?? forgetfulAnswers(),
    patience: {
      callTimeoutMs: setup.callTimeoutMs ?? 5000,
      callRetryBudgetMs: setup.callRetryBudgetMs ?? 3000,
      signal: setup.signal ?? new AbortController().signal,
      checkFresh: () => undefined,
      outage: {
        began: (reason) => void waits.push(`began: ${reason}`),
        goesOn: (reason) => void waits.push(reason),
        ended: () => void waits.push('ended'),
      },
    },
  });
}
