/** All operations, by name. */
import * as checkpoints from './checkpoints.ts';
import * as deployments from './deployments.ts';
import * as gc from './gc.ts';
import * as production from './production.ts';
import * as rewards from './rewards.ts';
import * as runs from './runs.ts';
import * as schedules from './schedules.ts';
import * as steer from './steer.ts';
import * as track from './track.ts';

export const OPERATIONS = {
  ...runs,
  ...deployments,
  ...steer,
  ...production,
  ...rewards,
  ...schedules,
  ...checkpoints,
  ...gc,
  ...track,
};
