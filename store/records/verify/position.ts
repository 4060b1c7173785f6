/** Compares `position.json` of a step with the position that follows from the groups and commits up to it. */
import type { Position } from '../../../core/contract/contract.ts';
import { canonicalJson } from '../../../core/text/hashes.ts';
import { storePosition, type RunPosition } from '../../../core/plan/step.ts';
import { positionKey } from '../../layout.ts';
import { readStepPosition } from '../runs/positions.ts';
import type { StoredStep } from './chain.ts';
import type { VerifyContext } from './context.ts';

/** `expected`: null if it is not known. The newest steps may have been committed and not finished. */
export async function verifyPosition(
  { store, findings, isLoop }: VerifyContext,
  step: StoredStep,
  chain: readonly StoredStep[],
  expected: RunPosition | null,
): Promise<void> {
  if (isLoop || step.step === 0) return;
  const key = positionKey(step);
  const stored = await findings.attempt('manifests', key, () => readStepPosition(store, step));
  if (stored === null) {
    const isNeeded = chain.some(
      ({ branch, step: later, commit }) => branch === step.branch && later >= step.step + 2 && commit !== null,
    );
    if (isNeeded) findings.problem('manifests', key, 'it is missing');
    return;
  }
  if (expected === null) return;
  if (essenceOf(stored) !== essenceOf(storePosition(expected, stored.costs)))
    findings.problem(
      'manifests',
      key,
      'it differs from the position that follows from the groups and commits of its run',
    );
}

/** Without costs, which nothing else tells, skipped steps, and the results of groups that may have been decided since. */
function essenceOf({ open, costs: _costs, emptySteps: _empty, branch, step, ...position }: Position): string {
  const groups = open.map(({ result, ...group }) => ({ ...group, step: result.step, group: result.group }));
  const { checkpoint, policies, start = null, league = null, dealt } = position;
  return canonicalJson({ branch, step, checkpoint, policies, start, league, dealt, groups });
}
