/** What a TypeScript worker does for the agents it was started with. */
import type { PlayDependencies } from './dependencies.ts';
import { createEvaluateActivities } from './evaluate.ts';
import { createJudgeActivities } from './judge.ts';
import { createPrepareActivities } from './prepare.ts';
import { createRecordActivities } from './record.ts';
import { createRolloutActivities } from './rollout.ts';
import { createScheduleActivities } from './schedule.ts';
import { createSteeringActivities } from './steering.ts';

export function createAgentActivities(dependencies: PlayDependencies) {
  return {
    ...createPrepareActivities(dependencies),
    ...createRolloutActivities(dependencies),
    ...createJudgeActivities(dependencies),
    ...createEvaluateActivities(dependencies),
    ...createRecordActivities(dependencies),
    ...createScheduleActivities(dependencies),
    ...createSteeringActivities(dependencies),
  };
}
