/**
 * Hits, and where and how. `process` is hit by SIGKILL, or by SIGSTOP and, beyond every heartbeat's time-out, SIGCONT.
 * It hits itself at its own point, or it is hit from outside while another process (`holder`) is held at the point:
 * Temporal's server and the S3 server, which have no points, and whoever has nothing to do there (`idle`).
 */
import type { ProcessName } from './points/protocol.ts';

/**
 * When the one hit from outside is hit: while the holder is held (`held`), with what the holder did next sent to it and
 * not yet read (`sent`), or in the middle of writing it down, told by its database's file or the bucket's folders
 * (`writing`).
 */
type Moment = 'held' | 'sent' | 'writing';

export type StoreKind = 'folder' | 'bucket';

export interface Row {
  readonly number: number;
  readonly process: ProcessName;
  readonly point: string;
  readonly occurrence: number;
  readonly signal: 'SIGKILL' | 'SIGSTOP';
  readonly store: StoreKind;
  readonly isIdle: boolean;
  readonly holder: ProcessName | null;
  readonly moment: Moment;
  /** The thawed process's words about the work that it lost. */
  readonly says: RegExp | null;
  /** Part of each slice that CI plays. */
  readonly inSlice: boolean;
}

type Short = readonly [point: string, occurrence: number, options?: Partial<Row>];

const STOP = { signal: 'SIGSTOP' } as const;
const SLICE = { inSlice: true } as const;
const LATE = /StaleAttempt|was suspended|step discarded/;
/** A step that a thawed GPU worker ends before it hears that it was taken away stands, and the next try finds it. */
const LATE_OR_FOUND = /StaleAttempt|was suspended|step discarded|"attempt":[2-9],"found":true/;

/** Two groups of four attempts a step, four steps, evaluations before, in the middle and after. */
const TYPESCRIPT_WORKER: readonly Short[] = [
  ['journal.after', 9, SLICE],
  ['prepare.entry', 1],
  ['run.before', 1],
  ['run.after', 1],
  ['blob.after', 1],
  ['prepared.before', 1],
  ['prepare.done', 1],
  ['workflow.plans-rollout', 1],
  ['rollout.entry', 2],
  ['call.sent', 30],
  ['call.answered', 30],
  ['journal.before', 30],
  ['journal.half', 20],
  ['rollouts.before', 2],
  ['rollouts.after', 3],
  ['judged.before', 3],
  ['judged.after', 3],
  ['rollout.done', 4],
  ['workflow.plans-judge', 2],
  ['judge.entry', 1],
  ['step-verdict.before', 2],
  ['step-verdict.after', 3],
  ['judge.done', 2],
  ['workflow.plans-train', 2],
  ['workflow.plans-checkpoint', 2],
  ['checkpoint.entry', 3],
  ['steps.after', 2],
  ['position.before', 2],
  ['position.after', 3],
  ['state.after', 3],
  ['eval-rollouts.before', 2],
  ['eval.before', 1],
  ['evaluate.done', 2],
  ['heartbeat', 1],
  ['workflow.continues', 1],
  ['workflow.continued', 1],
  ['workflow.ends', 1],
  ['journals.before', 1],
  ['call.answered', 40, { ...STOP, says: LATE, ...SLICE }],
  ['rollouts.before', 3, STOP],
  ['rollout.done', 3, STOP],
  ['workflow.plans-rollout', 3, STOP],
  ['train.micro-batch', 2, { holder: 'gpu-worker', isIdle: true }],
  ['train.micro-batch', 3, { ...STOP, holder: 'gpu-worker', isIdle: true }],
];

const GPU_WORKER: readonly Short[] = [
  ['train.micro-batch', 3],
  ['initialise.entry', 1],
  ['blob.after', 1],
  ['manifest.before', 1],
  ['view.before', 1],
  ['initialise.done', 1],
  ['prefill.before', 6],
  ['decode.after', 6],
  ['answer.ready', 30],
  ['adapter-load.before', 3],
  ['adapter-load.after', 2],
  ['train.entry', 1],
  ['train.load.after', 2],
  ['optimizer.before', 2],
  ['optimizer.after', 2],
  ['blob.before', 5],
  ['blob.after', 5],
  ['blob.after', 6],
  ['manifest.before', 3],
  ['manifest.after', 3, SLICE],
  ['view.after', 2],
  ['times.after', 2],
  ['probe.before', 2],
  ['train.done', 2],
  ['heartbeat', 3],
  ['train.micro-batch', 3, { ...STOP, says: LATE_OR_FOUND, ...SLICE }],
  ['optimizer.after', 1, { ...STOP }],
  ['manifest.before', 2, STOP],
  ['answer.ready', 20, STOP],
  ['rollout.entry', 3, { holder: 'typescript-worker', isIdle: true }],
  ['evaluate.entry', 2, { ...STOP, holder: 'typescript-worker', isIdle: true }],
];

const TYPESCRIPT = { holder: 'typescript-worker' } as const;
const GPU = { holder: 'gpu-worker' } as const;
const SENT = { moment: 'sent' } as const;
const WRITING = { moment: 'writing' } as const;

const TEMPORAL_SERVER: readonly Short[] = [
  ['rollout.done', 2, { ...TYPESCRIPT, ...SENT }],
  ['prepare.done', 1, { ...TYPESCRIPT }],
  ['initialise.done', 1, { ...GPU, ...WRITING }],
  ['workflow.plans-rollout', 1, { ...TYPESCRIPT, ...SENT }],
  ['workflow.plans-train', 1, { ...TYPESCRIPT, ...WRITING }],
  ['rollout.done', 3, { ...TYPESCRIPT, ...WRITING }],
  ['train.micro-batch', 2, { ...GPU, isIdle: true }],
  ['train.done', 1, { ...GPU, ...SENT }],
  ['train.done', 2, { ...GPU, ...WRITING, ...SLICE }],
  ['evaluate.done', 1, { ...TYPESCRIPT, ...SENT }],
  ['workflow.continues', 1, { ...TYPESCRIPT }],
  ['workflow.continues', 1, { ...TYPESCRIPT, ...SENT }],
  ['workflow.continues', 1, { ...TYPESCRIPT, ...WRITING }],
  ['workflow.continued', 1, { ...TYPESCRIPT }],
  ['judge.done', 2, { ...TYPESCRIPT, ...SENT }],
  ['checkpoint.done', 2, { ...TYPESCRIPT, ...WRITING }],
  ['workflow.ends', 1, { ...TYPESCRIPT, ...WRITING }],
  ['rollout.entry', 4, { ...TYPESCRIPT, ...STOP }],
  ['train.micro-batch', 4, { ...GPU, ...STOP }],
  ['workflow.continues', 1, { ...TYPESCRIPT, ...STOP }],
];

const COMMAND_LINE: readonly Short[] = [
  ['begins', 1],
  ['start.before', 1],
  ['start.after', 1, SLICE],
  ['looks', 6],
  ['ends', 1],
  ['looks', 4, STOP],
];

/** Hit while it is away, it is started again two seconds later. */
const S3_SERVER: readonly Short[] = [
  ['manifest.before', 2, { ...GPU, ...SENT }],
  ['prepared.before', 1, { ...TYPESCRIPT }],
  ['initialise.entry', 1, { ...GPU }],
  ['rollout.entry', 3, { ...TYPESCRIPT, ...STOP }],
  ['adapter-load.before', 2, { ...GPU }],
  ['upload.before', 3, { ...TYPESCRIPT, ...SENT }],
  ['blob.before', 5, { ...GPU, ...SENT }],
  ['rollouts.before', 2, { ...TYPESCRIPT }],
  ['manifest.before', 3, { ...GPU, ...STOP }],
  ['rollouts.after', 3, { ...TYPESCRIPT }],
  ['train.load.before', 2, { ...GPU }],
  ['judged.before', 3, { ...TYPESCRIPT, ...WRITING }],
  ['blob.after', 6, { ...GPU }],
  ['evaluate.entry', 1, { ...TYPESCRIPT }],
  ['manifest.after', 2, { ...GPU }],
  ['eval.before', 2, { ...TYPESCRIPT, ...SENT }],
  ['view.before', 2, { ...GPU, ...WRITING }],
  ['state.before', 3, { ...TYPESCRIPT, ...STOP }],
];

/** Rows that are others in a bucket: journals in the worker's spool, and a commit by a conditional put. */
const IN_BUCKET: readonly (readonly [ProcessName, readonly Short[]])[] = [
  ['s3-server', S3_SERVER],
  [
    'typescript-worker',
    [
      ['journal.after', 30],
      ['upload.after', 2],
    ],
  ],
  [
    'gpu-worker',
    [
      ['manifest.after', 3],
      ['manifest.before', 2, STOP],
    ],
  ],
];

const BY_PROCESS: readonly (readonly [ProcessName, readonly Short[]])[] = [
  ['temporal-server', TEMPORAL_SERVER],
  ['typescript-worker', TYPESCRIPT_WORKER],
  ['gpu-worker', GPU_WORKER],
  ['cli', COMMAND_LINE],
];

/** Runs in a folder, then those in a bucket. */
export const TABLE: readonly Row[] = [
  ...inTurns(),
  ...IN_BUCKET.flatMap(([process, rows]) => rows.map((row) => ({ ...fill(process, row), store: 'bucket' as const }))),
].map((row, index) => ({ ...row, number: index + 1 }));

/** With `--max-staleness 1`: while a step trains and the next one is played, and where the order of both is decided. */
const WHILE_OVERLAPPING: readonly (readonly [ProcessName, Short])[] = [
  ['gpu-worker', ['train.micro-batch', 3]],
  ['gpu-worker', ['manifest.after', 3]],
  ['typescript-worker', ['rollout.done', 5]],
  ['typescript-worker', ['workflow.plans-train', 2]],
  ['typescript-worker', ['workflow.continues', 1]],
];

export const OVERLAPPING: readonly Row[] = WHILE_OVERLAPPING.map(([process, row], index) => ({
  ...fill(process, row),
  number: TABLE.length + index + 1,
}));

/** In turn by process, so that a supervisor sees each die now and then, and not again and again. */
function inTurns(): Row[] {
  const longest = Math.max(...BY_PROCESS.map(([, rows]) => rows.length));
  return Array.from({ length: longest }, (_, turn) =>
    BY_PROCESS.flatMap(([process, rows]) => {
      const row = rows[turn];
      return row === undefined ? [] : [fill(process, row)];
    }),
  ).flat();
}

function fill(process: ProcessName, [point, occurrence, options]: Short): Row {
  return {
    number: 0,
    process,
    point,
    occurrence,
    signal: 'SIGKILL',
    store: 'folder',
    isIdle: false,
    holder: null,
    moment: 'held',
    says: null,
    inSlice: false,
    ...options,
  };
}

export function describeRow({ process, point, occurrence, signal, isIdle, holder, moment }: Row): string {
  const when = holder === null ? '' : ` of ${holder} (${moment})`;
  return `${process} ${signal} at ${point} #${occurrence}${when}${isIdle ? ', idle' : ''}`;
}
