/** Operations on the checkpoints of a run. */
import { formatBytes, formatNumber, metricLabel, plural, sortMetrics } from '../core/reports/format.ts';
import type { Copied } from '../store/records/copy/copy-run.ts';
import type { CheckpointRow } from '../views/api/run-views.ts';
import type { Removal, RunRemoval } from './remove-weights.ts';
import { CHECKPOINT_ARGUMENT, CHECKPOINT_HELP, RUN_ARGUMENT, type Flag } from './flags.ts';
import { defineOperation, type Table } from './operation.ts';

export const checkpoints = defineOperation({
  name: 'checkpoints',
  group: 'Operate',
  summary: "list a run's checkpoints, copy the run to or from another store, or remove weights or the run",
  details: [
    'Without an action it lists the committed steps of RUN, or shows the one that CHECKPOINT names. Needs no server.',
    ...CHECKPOINT_HELP,
  ],
  examples: ['temper checkpoints demo', 'temper checkpoints demo@best'],
  arguments: { checkpoint: CHECKPOINT_ARGUMENT },
  flags: {},
  effect: 'reads',
  run: async ({ checkpoint }, place) => (await import('./find-checkpoints.ts')).findCheckpoints(place, checkpoint),
  lines: (rows, { checkpoint }) =>
    rows.length === 0 ? [`${checkpoint} has no checkpoints yet`] : [checkpointTable(rows.toReversed())],
});

const SHOWN_HASH = 12;

function checkpointTable(rows: readonly CheckpointRow[]): Table {
  const metrics = sortMetrics(new Set(rows.flatMap(({ evaluation }) => Object.keys(evaluation?.metrics ?? {}))));
  const hasBranches = rows.some(({ branch }) => branch > 0);
  const hasEvals = rows.some(({ evaluation }) => evaluation !== null);
  const head = [
    'step',
    ...(hasBranches ? ['branch'] : []),
    'reward',
    ...(hasEvals ? ['eval reward'] : []),
    ...metrics.map((name) => `eval ${metricLabel(name)}`),
    'adapter',
    'size',
    'weights',
  ];
  const cells = rows.map((row) => [
    String(row.step),
    ...(hasBranches ? [String(row.branch)] : []),
    formatNumber(row.reward),
    ...(hasEvals ? [formatNumber(row.evaluation?.reward)] : []),
    ...metrics.map((name) => formatNumber(row.evaluation?.metrics[name])),
    row.adapterSha256.slice(0, SHOWN_HASH),
    formatBytes(row.bytes),
    row.weights,
  ]);
  return { head, rows: cells };
}

const STORE_ARGUMENT = { placeholder: 'STORE' } as const;
const COPY_FLAGS = {
  'with-pruned': { kind: 'boolean', description: 'also copy weights that were pruned in the target' },
} as const satisfies Record<string, Flag>;
const COPY_HELP = [
  'STORE is a folder or a URI. What exists is skipped, and an interrupted copy continues. Needs no server.',
] as const;

export const checkpointsPush = defineOperation({
  name: 'checkpoints push',
  summary: "copy a whole run from the project's store to another one",
  details: COPY_HELP,
  examples: ['temper checkpoints push demo /mnt/backup/store'],
  arguments: { run: RUN_ARGUMENT, store: STORE_ARGUMENT },
  flags: COPY_FLAGS,
  effect: 'changes',
  isLocal: true,
  run: async (input, place) => (await import('./copy-run.ts')).pushRun(place, input),
  lines: (copied) => copyLines(copied),
});

export const checkpointsPull = defineOperation({
  name: 'checkpoints pull',
  summary: "copy a whole run from another store to the project's, and repair damaged objects",
  details: COPY_HELP,
  examples: ['temper checkpoints pull demo /mnt/backup/store'],
  arguments: { run: RUN_ARGUMENT, store: STORE_ARGUMENT },
  flags: COPY_FLAGS,
  effect: 'changes',
  isLocal: true,
  run: async (input, place) => (await import('./copy-run.ts')).pullRun(place, input),
  lines: (copied) => copyLines(copied),
});

type CopiedRun = Copied & { readonly run: string; readonly to: string };

function copyLines({ run, to, steps, copied, copiedBytes, present, repaired, pruned }: CopiedRun): string[] {
  return [
    ...repaired.map((key) => `repaired  ${key}`),
    ...(pruned === 0
      ? []
      : [`${plural(pruned, 'pruned checkpoint')} were skipped (--with-pruned copies what the other store has)`]),
    `${run}: ${plural(steps, 'step')} in ${to}; ${plural(copied, 'object')} copied (${formatBytes(copiedBytes)}), ${present} already existed`,
  ];
}

const DRY_RUN = { kind: 'boolean', description: 'only show what would be removed' } as const;

export const checkpointsPrune = defineOperation({
  name: 'checkpoints prune',
  summary: 'remove weights and optimizer states of a run that nothing needs',
  details: ['Manifests, rollouts and verdicts stay. Say what to keep: there is no default. Needs no server.'],
  examples: ['temper checkpoints prune demo --keep-last 3 --keep-best reward:2 --dry-run'],
  arguments: { run: RUN_ARGUMENT },
  flags: {
    'keep-last': { kind: 'integer', minimum: 1, placeholder: 'N', description: 'keep the newest N of each branch' },
    'keep-best': {
      kind: 'texts',
      placeholder: 'METRIC:N',
      description: 'keep the N best by an evaluation metric; repeatable',
      form: { pattern: /^.+:0*[1-9]\d*$/, rule: 'METRIC:N', example: 'reward:3' },
    },
    'keep-every': { kind: 'integer', minimum: 1, placeholder: 'N', description: 'keep every Nth step' },
    'dry-run': DRY_RUN,
  },
  effect: 'changes',
  button: { label: 'Prune weights', isDangerous: true },
  says: async (input, place) =>
    sentences(removalLines(await (await import('./remove-weights.ts')).pruneRun(place, { ...input, dryRun: true }))),
  run: async (input, place) => (await import('./remove-weights.ts')).pruneRun(place, input),
  lines: (removal) => removalLines(removal),
});

export const checkpointsDelete = defineOperation({
  name: 'checkpoints delete',
  summary: 'remove the weights of some steps of a run, or the whole run',
  details: [
    'RUN may be RUN~BRANCH with --step. Steps that something needs are refused; their manifests, rollouts and verdicts stay.',
    '--all removes a run that has ended, with all it recorded. Needs no server.',
  ],
  examples: ['temper checkpoints delete demo --step 3,7-20', 'temper checkpoints delete demo --all --dry-run'],
  arguments: { run: RUN_ARGUMENT },
  flags: {
    step: { kind: 'ranges', placeholder: 'N,M-K', description: 'remove the weights of these steps', excludes: ['all'] },
    all: { kind: 'boolean', description: 'remove the whole run' },
    'with-production': {
      kind: 'boolean',
      description: 'also remove what was recorded under its name, feedback and promotions',
      needs: ['all'],
    },
    'dry-run': DRY_RUN,
  },
  effect: 'changes',
  button: { label: 'Delete', isDangerous: true },
  says: async (input, place) =>
    sentences(deletionLines(await (await import('./remove-weights.ts')).deleteOf(place, { ...input, dryRun: true }))),
  run: async (input, place) => (await import('./remove-weights.ts')).deleteOf(place, input),
  lines: (removal) => deletionLines(removal),
});

const sentences = (lines: readonly string[]): string => lines.join('\n');

const nameOf = ({ branch, step }: { branch: number; step: number }): string =>
  branch === 0 ? String(step) : `${branch}/${step}`;

function removalLines({ dryRun, pruned, kept, removedBlobs, removedBytes }: Removal): string[] {
  const [go, went] = dryRun ? ['would be removed', 'would be'] : ['removed', 'were'];
  return [
    ...kept.map(({ because, ...checkpoint }) => `kept    ${nameOf(checkpoint)}: ${because}`),
    ...(pruned.length === 0 ? [] : [`pruned  ${pruned.map(nameOf).join(', ')}`]),
    pruned.length === 0
      ? 'nothing to prune'
      : `weights of ${plural(pruned.length, 'checkpoint')} ${go}; ${plural(removedBlobs.length, 'blob')} with ${formatBytes(removedBytes)} ${went} deleted`,
  ];
}

function deletionLines(removal: Removal | RunRemoval): string[] {
  if (!('objects' in removal)) return removalLines(removal);
  const { dryRun, run, objects, removedBlobs, removedBytes, leftBecause } = removal;
  const went = dryRun ? 'would be deleted' : 'was deleted';
  return [
    `${run} ${went}: ${plural(objects, 'object')} and ${plural(removedBlobs.length, 'blob')} with ${formatBytes(removedBytes)}`,
    ...(leftBecause === null ? [] : [`its blobs are left to temper gc, because ${leftBecause}`]),
  ];
}
