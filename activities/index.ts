/** The activities of a TypeScript worker, for the agents it was started with. */
import type { PlayDependencies } from './dependencies.ts';
import { createAmendAndLocateActivities } from './amend-and-locate.ts';
import { createEvaluateActivities } from './evaluate.ts';
import { createGatherActivities } from './gather.ts';
import { createJudgeGivenActivities } from './judge-given.ts';
import { createJudgeGroupActivities } from './judge-group.ts';
import { createJudgeActivities } from './judge.ts';
import { createPrepareActivities } from './prepare.ts';
import { createPromoteActivities } from './promote.ts';
import { createRecordActivities } from './record.ts';
import { createRolloutActivities } from './rollout.ts';
import { createScheduleActivities } from './schedule.ts';

export function createAgentActivities(dependencies: PlayDependencies) {
  return {
    ...createPrepareActivities(dependencies),
    ...createRolloutActivities(dependencies),
    ...createJudgeGroupActivities(dependencies),
    ...createJudgeGivenActivities(dependencies),
    ...createGatherActivities(dependencies),
    ...createJudgeActivities(dependencies),
    ...createEvaluateActivities(dependencies),
    ...createRecordActivities(dependencies),
    ...createScheduleActivities(dependencies),
    ...createPromoteActivities(dependencies),
    ...createAmendAndLocateActivities(dependencies),
  };
}
