/**
 * Settings of trackers, and the activity that delivers a run to them. Settings hold no secret and stay
 * on the worker's host; on the wire a target is known by its name alone.
 */
import { z } from 'zod';

import { name } from './values.ts';

/** Name of a target in flags, in its cursor's key and in the id of its workflow. */
const targetName = name;

export const CsvSettings = z.strictObject({
  kind: z.literal('csv'),
  name: targetName.default('csv'),
  /** Folder of the files, relative to the project. */
  folder: z.string().min(1).default('tracking'),
});
export type CsvSettings = z.output<typeof CsvSettings>;

export const WandbSettings = z.strictObject({
  kind: z.literal('wandb'),
  name: targetName.default('wandb'),
  /** Null: WANDB_PROJECT, or else the agent's name. */
  project: z.string().min(1).nullable().default(null),
  /** Null: WANDB_ENTITY, or else the key's default entity. */
  entity: z.string().min(1).nullable().default(null),
  /** Null: WANDB_BASE_URL, or else W&B's cloud. */
  baseUrl: z.url().nullable().default(null),
  tags: z.array(z.string().min(1).max(64)).default([]),
  /** Adapters of checkpoints as artifacts of type `lora`. */
  artifacts: z.boolean().default(false),
});
export type WandbSettings = z.output<typeof WandbSettings>;

export const TrackioSettings = z.strictObject({
  kind: z.literal('trackio'),
  name: targetName.default('trackio'),
  /** Null: TRACKIO_PROJECT, or else the agent's name. */
  project: z.string().min(1).nullable().default(null),
  /** Null: TRACKIO_SERVER_URL, or else http://127.0.0.1:7860. */
  url: z.url().nullable().default(null),
});
export type TrackioSettings = z.output<typeof TrackioSettings>;

export const MlflowSettings = z.strictObject({
  kind: z.literal('mlflow'),
  name: targetName.default('mlflow'),
  /** Null: MLFLOW_EXPERIMENT_NAME, or else the agent's name. */
  experiment: z.string().min(1).nullable().default(null),
  /** Null: MLFLOW_TRACKING_URI, or else http://127.0.0.1:5000. */
  url: z.url().nullable().default(null),
  tags: z.record(z.string().min(1), z.string()).default({}),
});
export type MlflowSettings = z.output<typeof MlflowSettings>;

export const TrackerSettings = z.discriminatedUnion('kind', [
  CsvSettings,
  WandbSettings,
  TrackioSettings,
  MlflowSettings,
]);
export type TrackerSettings = z.output<typeof TrackerSettings>;
export type TrackerKind = TrackerSettings['kind'];

export const TRACKER_KINDS: readonly TrackerKind[] = ['csv', 'mlflow', 'trackio', 'wandb'];

type OptionsOf<Settings extends z.ZodType> = Omit<z.input<Settings>, 'kind'>;

/** Writes the metrics of a run into `FOLDER/RUN.csv`. */
export const csvTracker = (options: OptionsOf<typeof CsvSettings> = {}): z.input<typeof CsvSettings> => ({
  kind: 'csv',
  ...options,
});
/** Sends the metrics of runs to Weights & Biases. The key is in WANDB_API_KEY. */
export const wandb = (options: OptionsOf<typeof WandbSettings> = {}): z.input<typeof WandbSettings> => ({
  kind: 'wandb',
  ...options,
});
/** Sends the metrics of runs to a Trackio server. The write token is in TRACKIO_WRITE_TOKEN or HF_TOKEN. */
export const trackio = (options: OptionsOf<typeof TrackioSettings> = {}): z.input<typeof TrackioSettings> => ({
  kind: 'trackio',
  ...options,
});
/** Sends the metrics of runs to an MLflow server. Credentials are in MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD. */
export const mlflow = (options: OptionsOf<typeof MlflowSettings> = {}): z.input<typeof MlflowSettings> => ({
  kind: 'mlflow',
  ...options,
});

/** `from`: a target that has nothing of the run gets it from its first step on, or what comes after its present one. */
export const TrackInput = z
  .strictObject({ run: name, target: targetName, from: z.enum(['start', 'now']) })
  .meta({ id: 'TrackInput' });
export type TrackInput = z.infer<typeof TrackInput>;

/** `over`: the run has ended and the target knows all of it. */
export const TrackResult = z.strictObject({ over: z.boolean() }).meta({ id: 'TrackResult' });
export type TrackResult = z.infer<typeof TrackResult>;
