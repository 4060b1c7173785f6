/** `--track`, for every command that starts a run. */
import type { FlagValues } from './command.ts';

export const TRACK_FLAGS = {
  track: {
    kind: 'texts',
    placeholder: 'NAME',
    description: 'tracker to tell: wandb, mlflow, trackio, csv, or a name of track in temporal.config.ts; repeatable',
    default: 'those of track in temporal.config.ts; none switches them off',
  },
} as const;

export type TrackFlags = FlagValues<typeof TRACK_FLAGS>;
