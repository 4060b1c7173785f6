/** `temper eval --judge`: a hosted judge compares the models' attempts at each scenario. Its answers are stored before use. */
import { badConfig, WorkFailed } from '../../core/contract/failures.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { describeSpending } from '../../core/rules/judge-spending.ts';
import type { Agent, Scenario } from '../../play/agent.ts';
import { HostedLedger } from '../../play/hosted/hosted-ledger.ts';
import { judgeByLedger } from '../../play/judge/judge-by-ledger.ts';
import { hasPrice, requireJudgeKey, type HostedJudge } from '../../play/judge/judge-model.ts';
import { isRuler, type Ruler } from '../../play/judge/ruler.ts';
import { conversationOf } from '../../store/records/judging/conversation.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { EvalContext } from './command.ts';
import type { Players } from '../players/players.ts';
import type { Outcome } from './summarise.ts';

export interface Judging {
  readonly ruler: Ruler;
  readonly judge: HostedJudge;
  readonly maxUsd: number | null;
}

export function planJudging(
  { name, reward }: Agent,
  { players }: Pick<Players, 'players'>,
  { flags, env }: { flags: Pick<EvalContext['flags'], 'judge' | 'max-cost-usd'>; env: NodeJS.ProcessEnv },
): Judging | null {
  const maxUsd = flags['max-cost-usd'];
  if (!flags.judge) return null;
  if (!isRuler(reward) || reward.judge.kind === 'engine')
    throw badConfig(
      `--judge has no effect: the agent ${name} has no hosted judge; add reward: ruler({ … }) with one, or leave it out`,
    );
  if (players.length < 2)
    throw badConfig("--judge compares the models' attempts, and needs at least 2, got 1; pass another --model");
  requireJudgeKey(reward.judge, env);
  if (maxUsd !== null && !hasPrice(reward.judge, reward))
    throw badConfig(
      `--max-cost-usd has no effect while the price of ${reward.judge.name} is unknown; set usdPerMillionInput and usdPerMillionOutput of ruler in the agent's file`,
    );
  return { ruler: reward, judge: reward.judge, maxUsd };
}

export interface Judged {
  readonly outcomes: readonly Outcome[];
  readonly notes: readonly string[];
}

interface JudgedPlan {
  readonly store: Store;
  readonly scenarios: readonly Scenario[];
  readonly notes: readonly string[];
  readonly judging: Judging | null;
}

/** The outcomes as they are if no judge was asked for. */
export async function judgeOutcomes(
  outcomes: readonly Outcome[],
  { store, scenarios, notes, judging }: JudgedPlan,
  { env, signal }: Pick<CommandEnvironment, 'env' | 'signal'>,
): Promise<Judged> {
  if (judging === null) return { outcomes, notes };
  const { ruler, judge, maxUsd } = judging;
  const models = outcomes.map(({ model }) => model);
  const work = `eval-${hashOf({ models, scenarios: scenarios.map(({ id }) => id) }).slice(0, 16)}`;
  const ledger = await HostedLedger.open({ store, work, maxUsd });
  const rewards = outcomes.map(() => new Map<number, number>());
  try {
    for (const index of scenarios.keys()) {
      const attempts = outcomes.map(({ played }) => played?.attempts[index]);
      // An attempt is compared with those of all other models, or not at all.
      if (!attempts.every(isPlayed)) continue;
      const conversations = attempts.map((attempt, model) => ({ ...conversationOf(attempt), id: String(model) }));
      const options = { ledger, store, label: 'evaluation', env, signal };
      const scores = await judgeByLedger(conversations, ruler, judge, options);
      for (const [model, { score }] of scores.entries()) rewards[model]!.set(index, score);
    }
  } finally {
    await ledger.close();
  }
  if (rewards.every(({ size }) => size === 0))
    throw new WorkFailed('no scenario was played by all models, so the judge has nothing to compare');
  return {
    outcomes: outcomes.map((outcome, model) => withRewards(outcome, rewards[model]!)),
    notes: [...notes, `rewards are scores of ${judge.name}, which cost ${describeSpending(ledger.spent)}`],
  };
}

function isPlayed(attempt: AttemptRecord | undefined): attempt is AttemptRecord {
  return attempt?.status === 'ok';
}

function withRewards({ played, ...outcome }: Outcome, rewards: ReadonlyMap<number, number>): Outcome {
  if (played === null) return { ...outcome, played };
  const attempts = played.attempts.map((attempt, index) => ({ ...attempt, reward: rewards.get(index) ?? null }));
  return { ...outcome, played: { ...played, attempts } };
}
