/** The activities of a schedule's firing, as its workflow calls them: done by the workers that hold the agent. */
import { proxyActivities } from '@temporalio/workflow';

import type { AllocateInput, Allocated, Checkpoint, ConcludeInput } from '../core/contract.ts';
import { MINUTE_MS, RETRIED, type RunQueues } from './activities.ts';

export interface ScheduleActivities {
  allocate(input: AllocateInput): Promise<Allocated>;
  conclude(input: ConcludeInput): Promise<Checkpoint>;
}

export function openScheduleActivities({ rollout }: RunQueues): ScheduleActivities {
  const options = { ...RETRIED, taskQueue: rollout, startToCloseTimeout: MINUTE_MS };
  const agent = proxyActivities<ScheduleActivities>(options);
  return {
    allocate: (input) => agent.allocate.executeWithOptions({ ...options, summary: 'which run' }, [input]),
    conclude: (input) =>
      agent.conclude.executeWithOptions({ ...options, summary: `${input.state.run} · its last checkpoint` }, [input]),
  };
}
