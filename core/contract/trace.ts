/**
 * Targets for the attempts of a run as traces. The settings hold no secret, and stay on the worker's host; on the
 * wire a target is known by its name alone.
 */
import { z } from 'zod';

import { name } from './values.ts';

const sent = {
  /** Share of the attempts to send, beside failures and the best and the worst of each group. */
  share: z.number().min(0).max(1).default(0.1),
  /** Whether prompts, answers and tool calls are sent, or their sizes and rewards alone. */
  content: z.boolean().default(true),
  /** Longest text of one message; what is longer is cut, and says so. */
  maxTextLength: z.int().min(100).max(1_000_000).default(20_000),
};

const OtlpSettings = z.strictObject({
  kind: z.literal('otlp'),
  name: name.default('otlp'),
  /** Null: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT, or else http://127.0.0.1:4318. */
  url: z.url().nullable().default(null),
  ...sent,
});

const LangfuseSettings = z.strictObject({
  kind: z.literal('langfuse'),
  name: name.default('langfuse'),
  /** Null: LANGFUSE_BASE_URL, LANGFUSE_HOST, or else Langfuse's cloud. */
  url: z.url().nullable().default(null),
  /** Environment in Langfuse; null: its default. */
  environment: z
    .string()
    .regex(/^(?!langfuse)[a-z0-9_-]{1,40}$/)
    .nullable()
    .default(null),
  /** Whether rewards are scores of traces, too. */
  scores: z.boolean().default(true),
  /** Data set that gets the scenarios of sent attempts; null: none. */
  dataset: z.string().min(1).max(200).nullable().default(null),
  ...sent,
});

const WeaveSettings = z.strictObject({
  kind: z.literal('weave'),
  name: name.default('weave'),
  /** Null: WANDB_ENTITY. */
  entity: z.string().min(1).nullable().default(null),
  /** Null: WANDB_PROJECT, or else the agent's name. */
  project: z.string().min(1).nullable().default(null),
  /** Null: WF_TRACE_SERVER_URL, or else W&B's cloud. */
  url: z.url().nullable().default(null),
  ...sent,
});

const MlflowTraceSettings = z.strictObject({
  kind: z.literal('mlflow-traces'),
  name: name.default('mlflow-traces'),
  /** Null: MLFLOW_EXPERIMENT_NAME, or else the agent's name. */
  experiment: z.string().min(1).nullable().default(null),
  /** Null: MLFLOW_TRACKING_URI, or else http://127.0.0.1:5000. */
  url: z.url().nullable().default(null),
  ...sent,
});

export const TraceSettings = z.discriminatedUnion('kind', [
  OtlpSettings,
  LangfuseSettings,
  WeaveSettings,
  MlflowTraceSettings,
]);
export type TraceSettings = z.output<typeof TraceSettings>;
export type TraceKind = TraceSettings['kind'];

export const TRACE_KINDS: readonly TraceKind[] = ['langfuse', 'mlflow-traces', 'otlp', 'weave'];

type OptionsOf<Settings extends z.ZodType> = Omit<z.input<Settings>, 'kind'>;

/** Sends attempts to an OpenTelemetry collector, or to what else takes OTLP over HTTP. Headers are in OTEL_EXPORTER_OTLP_HEADERS. */
export const otlp = (options: OptionsOf<typeof OtlpSettings> = {}): z.input<typeof OtlpSettings> => ({
  kind: 'otlp',
  ...options,
});
/** Sends attempts and scores to Langfuse. The keys are in LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY. */
export const langfuseTraces = (options: OptionsOf<typeof LangfuseSettings> = {}): z.input<typeof LangfuseSettings> => ({
  kind: 'langfuse',
  ...options,
});
/** Sends attempts to W&B Weave. The key is in WANDB_API_KEY. */
export const weaveTraces = (options: OptionsOf<typeof WeaveSettings> = {}): z.input<typeof WeaveSettings> => ({
  kind: 'weave',
  ...options,
});
/** Sends attempts to an MLflow server. Credentials are in MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD. */
export const mlflowTraces = (
  options: OptionsOf<typeof MlflowTraceSettings> = {},
): z.input<typeof MlflowTraceSettings> => ({ kind: 'mlflow-traces', ...options });
