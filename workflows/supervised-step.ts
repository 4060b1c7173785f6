/** A step that trains examples: plan → train → committed. No agent is played for it. */
import { planSupervised, positionAfter, summariseSupervised } from '../core/plan-supervised.ts';
import type { RunPosition } from '../core/plan-step.ts';
import type { Run } from './run.ts';

export async function takeSupervisedStep(run: Run, position: RunPosition): Promise<RunPosition> {
  const { activities, status, controls, judging, queues } = run;
  const training = planSupervised(controls.config, position);
  const inHand = status.beginStep(training.step);
  try {
    status.enterPhase(inHand, 'train', `train step ${inHand.step}`, queues.gpu);
    const trained = await activities.train(training);
    const summary = summariseSupervised(training, trained, inHand.seconds());
    status.addStep(summary, judging.spent);
    await status.checkpoint(summary);
    return positionAfter(position, trained);
  } finally {
    status.endStep(inHand);
  }
}
