import type { StepSummary } from '../core/contract/contract.ts';
import { storePosition, type RunPosition } from '../core/plan/step.ts';
import { failIfBroken } from './endings.ts';
import type { Run } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';

/** Keeps a finished step: its line of the curve, the position after it, and what it has cost. */
export async function recordStep(
  run: Run,
  inHand: StepInHand,
  position: RunPosition,
  facts: StepSummary,
): Promise<void> {
  const { status, controls, costs } = run;
  const { usage } = inHand;
  const summary = { ...facts, ...(usage && { usage }), costs: costs.finishStep(controls.config, inHand) };
  status.addStep(summary, costs.shown(controls.config));
  if (summary.examples === undefined && summary.groups === 0) status.noteSkipped(summary);
  await status.checkpoint(summary, storePosition(position, costs.carried()));
  failIfBroken(run);
}
