/** `--track` and `--trace`, for every command that starts a run. */
import type { FlagValues } from '../../operations/flags.ts';

const heading = 'Trackers and traces';

export const TRACK_FLAGS = {
  track: {
    heading,
    isMain: true,
    kind: 'texts',
    placeholder: 'NAME',
    description:
      'tracker to send it to: wandb, mlflow, trackio, csv, or a name of track in temporal.config.ts; repeatable',
    default: 'those of track in temporal.config.ts; none switches them off',
    excludes: ['estimate'],
  },
  trace: {
    heading,
    kind: 'texts',
    placeholder: 'NAME',
    description:
      'where to send attempts as traces: otlp, langfuse, weave, mlflow-traces, or a name of trace; repeatable',
    default: 'those of trace in temporal.config.ts; none switches them off',
    excludes: ['estimate'],
  },
} as const;

export type TrackFlags = FlagValues<typeof TRACK_FLAGS>;
