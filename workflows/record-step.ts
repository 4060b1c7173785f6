import type { StepSummary } from '../core/contract.ts';
import { failIfBroken } from './endings.ts';
import type { Run } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';

/** Adds a finished step to the curve, with what it has cost. */
export async function recordStep(run: Run, inHand: StepInHand, facts: StepSummary): Promise<void> {
  const { status, controls, costs } = run;
  const { usage } = inHand;
  const summary = { ...facts, ...(usage && { usage }), costs: costs.finishStep(controls.config, inHand) };
  status.addStep(summary, costs.shown(controls.config));
  if (summary.examples === undefined && summary.groups === 0) status.noteSkipped(summary);
  await status.checkpoint(summary);
  failIfBroken(run);
}
