/** A planned run's estimate from a run of the store. */
import { describeConfigDifferences } from '../../core/rules/config-differences.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import { isUnreadable } from '../../core/contract/failures.ts';
import { REWARD_GROUP } from '../../core/rules/named-rewards.ts';
import { findPrice, type FoundPrice, type PriceTable } from '../../core/numbers/prices.ts';
import { isRuler, withJudge } from '../../play/judge/ruler.ts';
import { requireRun, type StoredRun } from '../../store/records/runs/run-reader.ts';
import { loadConfig } from '../../workers/config/config.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { RunPlan } from '../planning/run-plan.ts';
import { readRuns } from '../../store/records/runs/read-runs.ts';
import { forecast, type Forecast } from './forecast.ts';
import { measureRun, type Measured } from './measure.ts';

export interface Basis {
  readonly run: string;
  readonly measured: Measured;
}

/** Price of the judge; `isListed`: from the table of list prices. */
type JudgePrice = FoundPrice | null;

export interface Estimated {
  readonly basis: Basis;
  readonly forecast: Forecast;
  readonly price: JudgePrice;
}

export async function estimateRun(context: CommandEnvironment, plan: RunPlan, basis: Basis): Promise<Estimated> {
  const { config, existing, isComplete } = plan;
  const prices = await readPrices(context);
  const { agent, evalScenarios } = plan.played ?? { agent: {}, evalScenarios: 0 };
  const price = findJudgePrice(agent, config, prices);
  // A complete run is taken as if it began again.
  const state = isComplete ? null : (existing?.state ?? null);
  const planned = { config, evalScenarios, state, judgePrice: price };
  return { basis, forecast: forecast(basis.measured, planned), price };
}

export async function readPrices({ project, env }: CommandEnvironment): Promise<PriceTable> {
  return (await loadConfig(project, env)).prices;
}

/** The agent's own price, the project's, or the list's; nobody is paid for the engine's answers. */
function findJudgePrice({ reward }: { reward?: unknown }, { judge: name }: RunConfig, prices: PriceTable): JudgePrice {
  if (name === null || name === REWARD_GROUP || !isRuler(reward)) return null;
  const { judge, usdPerMillionInput, usdPerMillionOutput } = withJudge(reward, name);
  if (judge.kind === 'engine' || judge.isFree)
    return { usdPerMillionInput: 0, usdPerMillionOutput: 0, isListed: false };
  if (usdPerMillionInput === null || usdPerMillionOutput === null) return findPrice(prices, name);
  return { usdPerMillionInput, usdPerMillionOutput, isListed: false };
}

/** The run itself if it has begun, the named one, or the most similar one; null if there is none. */
export async function findLike(
  context: CommandEnvironment,
  { config, existing, store }: Pick<RunPlan, 'config' | 'existing' | 'store'>,
  named: string | null,
): Promise<Basis | null> {
  const prices = await readPrices(context);
  const measure = async (run: StoredRun): Promise<Basis | null> => {
    const measured = await measureRun(store, run, prices);
    return measured === null ? null : { run: run.file.config.run, measured };
  };
  if (named !== null) return measure(await requireRun(store, named));
  const own = existing === null ? null : await measure(existing);
  if (own !== null) return own;
  const found = await readRuns(store, () => undefined);
  for (const run of found.filter((each) => isLike(each, config)).toSorted(bySimilarity(config))) {
    const basis = await measure(run).catch(nullIfUnreadable);
    if (basis !== null) return basis;
  }
  return null;
}

function isLike({ file }: StoredRun, { agent, baseModel }: RunConfig): boolean {
  return file.loop === undefined && file.config.agent === agent && file.config.baseModel === baseModel;
}

/** Fewest differences first; of equal ones, the one with most steps. */
function bySimilarity(config: RunConfig): (left: StoredRun, right: StoredRun) => number {
  const differences = ({ file }: StoredRun) => describeConfigDifferences(file.config, config).length;
  return (left, right) => differences(left) - differences(right) || right.steps.length - left.steps.length;
}

/** One that cannot be read must not hide the others. */
function nullIfUnreadable(error: unknown): null {
  if (isUnreadable(error)) return null;
  throw error;
}
