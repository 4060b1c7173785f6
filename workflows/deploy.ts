/** A deployment: its stages in order. A stage that the store has is over at once, so that starting again goes on. */
import { setCurrentDetails } from '@temporalio/workflow';

import { openDeployActivity } from './activities.ts';

/** Everything else is in the store: no name of a repository, no address. */
export interface DeployInput {
  run: string;
  /** Id of the deployment. */
  id: string;
  stages: string[];
  queue: string;
}

export async function deployCheckpoint({ run, id, stages, queue }: DeployInput): Promise<void> {
  const activity = openDeployActivity(queue);
  for (const [index, stage] of stages.entries()) {
    setCurrentDetails(`Stage ${index + 1} of ${stages.length}: ${stage}. \`temper deploy list ${run}\` shows it.`);
    await activity.deployStage({ run, id, stage });
  }
  setCurrentDetails(`Deployed. \`temper deploy list ${run}\` shows where.`);
}
