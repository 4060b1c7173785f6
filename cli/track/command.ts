import { JSON_FLAG } from '../../operations/flags.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';

export const trackCommand = defineCommand({
  name: 'track',
  summary: 'tell a tracker of a run that began without it, or show what trackers know',
  usage: 'RUN [--to NAME] [--backfill] [--json]',
  details: [
    'With --to, a running run tells the tracker its next steps; --backfill tells all steps so far, too. A run that has',
    'ended is told by this command itself, which needs no server. Without --to, you see how far each tracker was told.',
    'A tracker is wandb, mlflow, trackio, csv, or a name of track in temporal.config.ts; otlp, langfuse, weave,',
    'mlflow-traces, or a name of trace there, are told attempts as traces. Keys are read from the environment.',
  ],
  examples: ['temper track demo', 'temper track demo --to wandb --backfill', 'temper track demo --to mlflow --to csv'],
  arguments: { run: { placeholder: 'RUN' } },
  flags: {
    to: { kind: 'texts', placeholder: 'NAME', description: 'tracker to tell; repeatable' },
    backfill: { kind: 'boolean', description: 'tell the steps that the run has taken already, too' },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./track.ts')).track(context),
});

export type TrackContext = CommandContext<typeof trackCommand>;
