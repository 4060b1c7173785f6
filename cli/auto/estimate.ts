/** Cost of the stages after the scenarios, as a range. */
import type { RunConfig } from '../../core/contract.ts';
import type { PricedModel } from '../../play/hosted/hosted-ledger.ts';
import { addUp, type Calls, type CostEstimate, type Range } from '../scenarios/estimate.ts';
import type { AutoSettings } from './settings.ts';

interface LaterStages {
  readonly settings: AutoSettings;
  readonly writer: PricedModel;
  readonly judge: PricedModel;
  /** Null if the command stops before the run. */
  readonly run: RunConfig | null;
}

/** Tokens of one call. */
const AGENT = { prompt: { low: 300, high: 3000 }, completion: { low: 100, high: 1500 } };
const SAMPLES = { prompt: { low: 200, high: 1000 }, completion: { low: 60, high: 2000 } };
/** The rules of a judge's prompt, and its rubric. */
const RULES: Range = { low: 450, high: 900 };
const EXPLANATION: Range = { low: 25, high: 120 };
/** Tokens of an attempt as the judge reads it, beside the sampled ones. */
const ATTEMPT: Range = { low: 30, high: 200 };
/** An agent with tools samples so many turns at most, and the judge reads their results, too. */
const TURNS = 10;
const SAMPLED_SCENARIOS = 3;

export function estimateLater({ settings, writer, judge, run }: LaterStages): CostEstimate {
  const sampled = { low: SAMPLED_SCENARIOS, high: SAMPLED_SCENARIOS };
  const written = [kindOf(writer, { low: 1, high: 3 }, AGENT), kindOf(writer, sampled, SAMPLES)];
  const checked = judging(judge, { low: SAMPLED_SCENARIOS, high: 3 * SAMPLED_SCENARIOS }, 3, 300);
  if (run === null) return addUp([...written, checked]);
  const { steps, groupsPerStep, groupSize, replacementRounds, rollout } = run;
  const longest = rollout.maxTokens * (settings.mcp === null ? 1 : TURNS);
  const groups = { low: steps * groupsPerStep, high: steps * groupsPerStep * (1 + replacementRounds) };
  const compared = { low: settings.heldOut, high: settings.heldOut };
  return addUp([...written, checked, judging(judge, groups, groupSize, longest), judging(judge, compared, 2, longest)]);
}

/** Calls that compare so many attempts each. */
function judging(model: PricedModel, calls: Range, attempts: number, longest: number): Calls {
  return kindOf(model, calls, {
    prompt: { low: RULES.low + attempts * ATTEMPT.low, high: RULES.high + attempts * (ATTEMPT.high + longest) },
    completion: { low: attempts * EXPLANATION.low, high: attempts * EXPLANATION.high },
  });
}

function kindOf(model: PricedModel, calls: Range, each: { readonly prompt: Range; readonly completion: Range }): Calls {
  const all = ({ low, high }: Range): Range => ({ low: low * calls.low, high: high * calls.high });
  return { model, calls, prompt: all(each.prompt), completion: all(each.completion) };
}
