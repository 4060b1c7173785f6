/** A judge outside of any run, whose answers a command's ledger keeps and counts. */
import { DEFAULT_ROLLOUT } from '../../core/rules/run-defaults.ts';
import { TemperError } from '../../core/contract/failures.ts';
import { forgetfulAnswers, storedVerdicts } from '../../store/records/judging/verdicts.ts';
import type { Store } from '../../store/store.ts';
import { withAddress } from '../connections/providers.ts';
import type { HostedLedger, PricedModel } from '../hosted/hosted-ledger.ts';
import { OutageClock } from '../connections/clock.ts';
import type { Conversation } from '../../store/records/judging/conversation.ts';
import { judgeConversations, type Judgement } from './judge-conversations.ts';
import { requireJudgeKey, type HostedJudge } from './judge-model.ts';
import type { Ruler } from './ruler.ts';

export interface LedgerJudgeOptions {
  readonly ledger: HostedLedger;
  readonly store: Store;
  /** Purpose of the calls. */
  readonly label: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

/** Answers that are paid for before it gives up; each round asks up to twice. */
const MAX_PAID = 6;

/** Scores of conversations by a hosted judge. Rounds whose answers were unusable are read again, and not paid for again. */
export async function judgeByLedger(
  conversations: readonly Conversation[],
  ruler: Ruler,
  judge: HostedJudge,
  options: LedgerJudgeOptions,
): Promise<Judgement['scores']> {
  const { ledger, label } = options;
  const before = ledger.spent.calls;
  for (let round = 0; ; round++) {
    try {
      return await judgeOnce(conversations, ruler, judge, {
        ...options,
        label: round === 0 ? label : `${label}/${round}`,
      });
    } catch (error) {
      const isUnusable = error instanceof TemperError && error.type === 'JudgeFailed';
      if (!isUnusable || ledger.spent.calls - before >= MAX_PAID) throw error;
    }
  }
}

async function judgeOnce(
  conversations: readonly Conversation[],
  ruler: Ruler,
  judge: HostedJudge,
  { ledger, store, label, env, signal }: LedgerJudgeOptions,
): Promise<Judgement['scores']> {
  const connection = ledger.connect(pricedJudge(ruler, judge, env), label);
  const { callTimeoutMs, callRetryBudgetMs } = DEFAULT_ROLLOUT;
  const { scores } = await judgeConversations(conversations, {
    judge: { ruler, connection },
    model: judge.name,
    verdicts: storedVerdicts(store),
    answers: forgetfulAnswers(),
    patience: { callTimeoutMs, callRetryBudgetMs, signal, checkFresh: () => undefined, outage: new OutageClock() },
  });
  return scores;
}

function pricedJudge(ruler: Ruler, judge: HostedJudge, env: NodeJS.ProcessEnv): PricedModel {
  const { usdPerMillionInput: prompt, usdPerMillionOutput: completion } = ruler;
  return {
    hosted: { ...withAddress(judge, env), key: requireJudgeKey(judge, env) },
    price: prompt === null || completion === null ? null : { prompt, completion },
  };
}
