/** The evaluation: base model and trained model play the held-out scenarios, and the judge compares their attempts. */
import { conversationOf } from '../../store/records/judging/conversation.ts';
import { judgeByLedger } from '../../play/judge/judge-by-ledger.ts';
import { isRuler } from '../../play/judge/ruler.ts';
import type { AttemptRecord } from '../../store/records/trajectories.ts';
import { WorkFailed } from '../command-line/errors.ts';
import { parseCommandLine } from '../command-line/parse.ts';
import { evalCommand, type EvalContext } from '../eval/command.ts';
import { checkPlayed, compareModels, evalLines } from '../eval/eval.ts';
import type { EvalPlan } from '../eval/plan-eval.ts';
import type { EvalSummary, Outcome } from '../eval/summarise.ts';
import { requireBaseModel } from '../planning/base-model.ts';
import { writeOwn, type AutoWork } from './auto-work.ts';
import { AGENT_FILE, EVALUATION_FILE } from './file-names.ts';
import { trainContext } from './run-stage.ts';

/** Content of `evaluation.json`. */
export interface Evaluation {
  readonly baseModel: string;
  readonly run: string;
  /** Judge that scored the attempts; null if the agent gives its own reward. */
  readonly judge: string | null;
  readonly summary: EvalSummary;
}

export async function evaluateRun(work: AutoWork): Promise<void> {
  const { environment, state } = work;
  const run = state.run?.name;
  if (run === undefined) throw new Error('the evaluation comes after the run');
  const { flags } = await trainContext(work, []);
  const baseModel = requireBaseModel(flags);
  const context = evalContext(work, [baseModel, run]);
  let judge: string | null = null;
  const { summary, file } = await compareModels(context, async (outcomes, plan) => {
    const judged = await judgeOutcomes(work, outcomes, plan);
    judge = judged?.judge ?? null;
    return judged?.outcomes ?? outcomes;
  });
  for (const line of evalLines(summary)) environment.output.line(line);
  environment.output.line(`attempts side by side: ${file}`);
  checkPlayed(summary);
  const evaluation: Evaluation = { baseModel, run, judge, summary };
  await writeOwn(work, EVALUATION_FILE, `${JSON.stringify(evaluation, null, 2)}\n`);
}

function evalContext({ environment }: AutoWork, models: readonly string[]): EvalContext {
  const words = models.map((model) => `--model=${model}`);
  const line = parseCommandLine(evalCommand, [AGENT_FILE, ...words]);
  if (line.isHelp) throw new Error('no help was asked for');
  return { ...environment, flags: line.flags, args: line.args };
}

/** Scores of the judge as rewards; null if the agent has no hosted judge. */
export async function judgeOutcomes(
  work: Pick<AutoWork, 'ledger' | 'store' | 'environment'>,
  outcomes: readonly Outcome[],
  { agentFile, scenarios }: Pick<EvalPlan, 'agentFile' | 'scenarios'>,
): Promise<{ judge: string; outcomes: Outcome[] } | null> {
  const ruler = agentFile.agent.reward;
  if (!isRuler(ruler) || ruler.judge.kind === 'engine') return null;
  const { judge } = ruler;
  const { ledger, store, environment } = work;
  const { env, signal } = environment;
  const rewards = outcomes.map(() => new Map<number, number>());
  for (const index of scenarios.keys()) {
    const attempts = outcomes.map(({ played }) => played?.attempts[index]);
    // An attempt is compared with those of all other models, or not at all.
    if (!attempts.every(isPlayed)) continue;
    const conversations = attempts.map((attempt, model) => ({ ...conversationOf(attempt), id: String(model) }));
    const options = { ledger, store, label: 'evaluation', env, signal };
    const scores = await judgeByLedger(conversations, ruler, judge, options);
    for (const [model, { score }] of scores.entries()) rewards[model]!.set(index, score);
  }
  if (rewards.every(({ size }) => size === 0))
    throw new WorkFailed('no held-out scenario was played by both models; see the failures of temper eval');
  const judged = outcomes.map((outcome, model) => withRewards(outcome, rewards[model]!));
  return { judge: judge.name, outcomes: judged };
}

function isPlayed(attempt: AttemptRecord | undefined): attempt is AttemptRecord {
  return attempt?.status === 'ok';
}

function withRewards({ played, ...outcome }: Outcome, rewards: ReadonlyMap<number, number>): Outcome {
  if (played === null) return { ...outcome, played };
  const attempts = played.attempts.map((attempt, index) => ({ ...attempt, reward: rewards.get(index) ?? null }));
  return { ...outcome, played: { ...played, attempts } };
}
