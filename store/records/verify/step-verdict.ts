/** Checks a step's verdict against its groups' files. */
import { canonicalJson } from '../../../core/hashes.ts';
import { planJudging } from '../../../core/plan-step.ts';
import { isSupervisedStep } from '../../../core/supervised.ts';
import { stepVerdictKey } from '../../layout.ts';
import { readStepVerdict, toGroupVerdict, toStepVerdict, type DecidedGroup } from '../step-verdict.ts';
import { compareInputs, plannedConfig, type VerifyContext } from './context.ts';
import type { PlayedStep } from './groups.ts';

/** A script's own loop has none: no plan lists what it trains. */
export async function verifyStepVerdict(
  context: VerifyContext,
  { step, position, isDone }: PlayedStep,
  groups: (DecidedGroup | null)[],
): Promise<void> {
  const { store, findings, isLoop } = context;
  const config = plannedConfig(context, step);
  if (isLoop || step.step === 0 || (config !== null && isSupervisedStep(config, step.step))) return;
  const key = stepVerdictKey(step);
  const verdict = await findings.attempt('verdicts', key, () => readStepVerdict(store, step));
  if (findings.isBroken(key)) return;
  if (verdict === null) {
    if (isDone) findings.problem('verdicts', key, 'it is missing');
    return;
  }
  findings.count('verdicts');
  const known = groups.filter((group) => group !== null);
  if (config === null || position === null || known.length < groups.length) return;
  const results = known.map(({ result }) => result);
  compareInputs(context, key, verdict.inputsSha256, planJudging(config, position, results).inputsSha256);
  const decided = toStepVerdict(verdict.inputsSha256, known).groups;
  const stored = verdict.groups.map((group) => toGroupVerdict(group, group.rewards));
  if (canonicalJson(decided) !== canonicalJson(stored))
    findings.problem('verdicts', key, 'it decides otherwise than follows from the groups of its step');
}
