/** A step that trains examples: plan → train → committed. No agent is played for it. */
import { planSupervised, standAfter, summariseSupervised } from '../core/plan-supervised.ts';
import type { RunPosition } from '../core/plan-step.ts';
import type { Run } from './run.ts';

export async function takeSupervisedStep(run: Run, position: RunPosition): Promise<RunPosition> {
  const { activities, board, instructions, judging, queues } = run;
  const training = planSupervised(instructions.config, position);
  const inHand = board.begin(training.step);
  try {
    board.enter(inHand, 'train', `train step ${inHand.step}`, queues.gpu);
    const trained = await activities.train(training);
    const summary = summariseSupervised(training, trained, inHand.seconds());
    board.stepped(summary, judging.spent);
    await board.checkpoint(summary);
    return standAfter(position, trained);
  } finally {
    board.leave(inHand);
  }
}
