/**
 * Schemas of the files for display. A run may have been pulled from another user's store, so each file is parsed before
 * use. A later version may have added members at any level: they are kept and ignored, and known ones have their types.
 * Only the wire between processes is strict.
 */
import { z } from 'zod';

import {
  BlobRef,
  Branch,
  Checkpoint,
  CostLedger,
  EvalResult,
  firstIssue,
  isFromLaterVersion,
  Position,
  Prepared,
  ProductionConfig,
  RunConfig,
  RunState,
  SettingChange,
  StepSummary,
} from '../../core/contract/contract.ts';
import {
  AttemptRecord,
  Judged,
  JudgeAnswerFile,
  JudgeQuestionFile,
  Recording,
  RolloutHeader,
  StepVerdict,
} from '../../core/contract/records.ts';
import { laterVersion, TemperError } from '../../core/contract/failures.ts';
import { RECORD_SCHEMA } from '../../core/contract/wire-constants.ts';
import { decodeJson, encodeJson } from '../bytes/json.ts';
import type { Store } from '../store.ts';

/** A type of the wire as a file holds it: with members that this version does not know. */
export function tolerant<T extends z.ZodType>(strict: T): z.ZodType<z.output<T>>;
export function tolerant(strict: z.ZodType): z.ZodType {
  if (strict instanceof z.ZodObject) {
    const members = Object.entries(strict.shape as z.ZodRawShape).map(([name, type]) => [
      name,
      tolerant(type as z.ZodType),
    ]);
    return strict.clone({ ...strict.def, shape: Object.fromEntries(members), catchall: z.unknown() });
  }
  const { def } = strict as z.ZodType & { def: Wrapping };
  if (def.options !== undefined) return strict.clone({ ...def, options: def.options.map(tolerant) } as never);
  const inner = (['element', 'innerType', 'valueType'] as const).find((name) => def[name] !== undefined);
  return inner === undefined ? strict : strict.clone({ ...def, [inner]: tolerant(def[inner]!) });
}

/** What arrays, records, unions and optional values are made of. */
interface Wrapping {
  readonly element?: z.ZodType;
  readonly innerType?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

const schema = z.literal(RECORD_SCHEMA);
const CheckpointInFile = tolerant(Checkpoint).nullable();

export const RunFileSchema = z.looseObject({
  schema,
  config: tolerant(RunConfig),
  agentCodeSha256: z.string(),
  versions: z.record(z.string(), z.string()),
  /** Null if the run began with a fresh adapter. */
  parent: CheckpointInFile,
  /** Model of a script that owns the loop; no plan has its groups, or says when they are trained. */
  loop: z.looseObject({ project: z.string(), model: z.string() }).optional(),
});

export const PreparedFileSchema = tolerant(Prepared);
export const StateFileSchema = tolerant(RunState);
export const StepSummaryLineSchema = tolerant(StepSummary);
export const EvalFileSchema = tolerant(EvalResult);
/** `costs`: those of the run when it went back. Absent: those of the step before the branch. */
export const BranchFileSchema = z.looseObject({
  schema,
  requestId: z.string(),
  ...Branch.shape,
  costs: tolerant(CostLedger).optional(),
});
export const PositionFileSchema = tolerant(Position.extend({ schema }));
export const ChangesFileSchema = z.looseObject({ schema, changes: z.array(tolerant(SettingChange)) });
/** Its configuration as far as it names what the store must keep: a schedule outlives versions. */
export const ScheduleFileSchema = z.looseObject({
  schema,
  from: CheckpointInFile,
  config: z.looseObject({
    judge: z.string().nullish(),
    roles: z
      .record(z.string(), z.looseObject({ kind: z.string(), checkpoint: tolerant(Checkpoint).optional() }))
      .optional(),
    train: z.looseObject({ klReference: tolerant(BlobRef).optional() }),
  }),
  isDeleted: z.boolean(),
});
export const FiringFileSchema = tolerant(
  z.strictObject({
    schema,
    /** Id of the workflow that asked. */
    firing: z.string(),
    run: z.string(),
    parent: Checkpoint.nullable(),
  }),
);
export const ConclusionFileSchema = z.looseObject({ schema, checkpoint: tolerant(Checkpoint) });
/** `optimizer`: the optimizer states alone were removed; false: a copy restored everything. */
export const PrunedFileSchema = z.looseObject({ schema, pruned: z.union([z.boolean(), z.literal('optimizer')]) });
export const ChosenFileSchema = z.looseObject({ schema, production: tolerant(ProductionConfig) });
export const WaitingFileSchema = z.looseObject({ schema, reason: z.string(), at: z.iso.datetime() });
export const ScenarioLineSchema = z.looseObject({ id: z.string(), scenario: z.unknown() });
/** When a group was played, and in which order each attempt made its calls. Times are milliseconds since 1970. */
export const TimesFileSchema = z.looseObject({
  callOrders: z.record(z.string(), z.array(z.int().min(0))).optional(),
  startedAt: z.int().optional(),
  endedAt: z.int().optional(),
  seconds: z.number().min(0).optional(),
  /** Absent in older files; a call is null if its answer came from the journal. */
  attemptTimes: z
    .record(
      z.string(),
      z.looseObject({
        startedAt: z.int(),
        endedAt: z.int(),
        calls: z.array(z.tuple([z.int(), z.int()]).nullable()),
        thrownAt: z.string().optional(),
      }),
    )
    .optional(),
});
export type TimesFile = z.output<typeof TimesFileSchema>;

/** When a step was committed. */
export const ManifestTimesSchema = z.looseObject({ committedAt: z.iso.datetime({ offset: true }) });

/** Name of a lease, which teardown gets: nothing that a command line or a path would take for something else. */
export const LEASE_ID = /^temper[0-9a-f]{16}$/;
const PROCESS_ID = /^[0-9a-f]{16}$/;

export const LeaseFileSchema = z.looseObject({
  schema,
  id: z.string().regex(LEASE_ID),
  agent: z.string(),
  resource: z.string(),
  scope: z.enum(['worker', 'group', 'attempt']),
  /** The process that set it up, by its record among the holders. */
  holder: z.string().regex(PROCESS_ID),
  /** Null outside of runs, as in `temper try`, and for the scope `worker`. */
  place: z.looseObject({ run: z.string(), branch: z.int(), step: z.int(), part: z.string() }).nullable(),
  scenario: z.string().nullable(),
  attempt: z.int().nullable(),
  startedAt: z.string(),
  host: z.string(),
  pid: z.int(),
});
export const LeaseDataSchema = z.looseObject({ schema, data: z.unknown() });
export const LeaseFailureSchema = z.looseObject({ schema, message: z.string(), failedAt: z.string() });

const given = {
  schema,
  by: z.string().nullable(),
  note: z.string().nullable(),
  at: z.iso.datetime(),
  /** Idempotency key: a repeated request gives nothing twice. */
  key: z.string().nullable(),
};
/** A row of a group's ledger of given rewards. Attempts are numbers in the group. */
export const GivenRowSchema = z.discriminatedUnion('kind', [
  z.looseObject({
    ...given,
    kind: z.literal('reward'),
    attempt: z.int().min(0),
    reward: z.number(),
    metrics: z.record(z.string(), z.number()).optional(),
  }),
  z.looseObject({
    ...given,
    kind: z.literal('comparison'),
    left: z.int().min(0),
    right: z.int().min(0),
    answer: z.enum(['left', 'right', 'equal']),
  }),
  /** The group is decided: rows before it count, and none follows. */
  z.looseObject({
    schema,
    kind: z.literal('closed'),
    reason: z.enum(['complete', 'timeout', 'stale']),
    at: z.iso.datetime(),
  }),
]);

/** `generated/<work>/answers/<key>.json`. The label is for people; `text` is the body as it came. */
export const HostedAnswerFileSchema = z.looseObject({
  schema,
  label: z.string(),
  model: z.string(),
  promptTokens: z.number().nullable(),
  completionTokens: z.number().nullable(),
  /** Null if it is not known. */
  usd: z.number().nullable(),
  text: z.string(),
});

export const AttemptSchema = tolerant(AttemptRecord);
export const RolloutHeaderSchema = tolerant(RolloutHeader);
export const JudgedSchema = tolerant(Judged);
export const StepVerdictFileSchema = tolerant(StepVerdict);
export const AnswerFileSchema = tolerant(JudgeAnswerFile);
export const QuestionFileSchema = tolerant(JudgeQuestionFile);
export const RecordingSchema = tolerant(Recording);

/** Throws StoreCorrupt or LaterVersion, with the file's name and what is wrong in it. */
export function parseStored<T>(fileSchema: z.ZodType<T>, value: unknown, key: string): T {
  const parsed = fileSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  if (isFromLaterVersion(parsed.error, value)) throw laterVersion(key, firstIssue(parsed.error));
  throw new TemperError(
    'StoreCorrupt',
    `${key} is not as Temper writes it (${firstIssue(parsed.error)}); restore it from a copy`,
  );
}

/** Checks that a file's run is that of its folder: a renamed folder is not taken for another run. */
export function checkRunOf(file: { readonly run: string }, run: string, key: string, remedy: string): void {
  if (file.run === run) return;
  throw new TemperError(
    'StoreCorrupt',
    `${key} must be of the run ${run}, but it is of the run ${file.run}; ${remedy}`,
  );
}

/** Write-once: the file that is stored then, which may be an earlier writer's. */
export async function publishStored<T>(
  store: Store,
  key: string,
  fileSchema: z.ZodType<T>,
  file: NoInfer<T>,
): Promise<T> {
  const { bytes } = await store.publish(key, encodeJson(file));
  return parseStored(fileSchema, decodeJson(bytes, key), key);
}

/** Null if there is no such file. */
export async function readStored<T>(store: Store, key: string, fileSchema: z.ZodType<T>): Promise<T | null> {
  const bytes = await store.read(key);
  return bytes === null ? null : parseStored(fileSchema, decodeJson(bytes, key), key);
}
