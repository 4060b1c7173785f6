import type { StepSummary } from '../../core/contract.ts';
import type { CheckpointName } from '../../core/policy-name.ts';
import { listCheckpoints, type CheckpointEntry } from '../../store/records/checkpoints.ts';
import { findCheckpoint } from '../../store/records/find-checkpoint.ts';
import { readBranchCurve } from '../../store/records/curve.ts';
import { EXIT } from '../command-line/errors.ts';
import { formatBytes, formatNumber, metricLabel, sortMetrics } from '../../core/format.ts';
import { printJson } from '../terminal/output.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { createTable } from '../terminal/table.ts';
import type { CheckpointsContext } from './command.ts';

const SHOWN_HASH = 12;

/** Lists all checkpoints of a run, or the named one. */
export async function showCheckpoints(
  { flags, project, env, output }: CheckpointsContext,
  name: CheckpointName,
  areAll: boolean,
): Promise<number> {
  const store = await openProjectStore(project, env);
  const named = areAll ? null : await findCheckpoint(store, name);
  const { run } = named ?? name;
  const entries = (await listCheckpoints(store, run)).filter(
    ({ branch, step }) => named === null || (branch === named.branch && step === named.step),
  );
  const curves = new Map<number, StepSummary[]>();
  for (const { branch } of entries)
    if (!curves.has(branch)) curves.set(branch, await readBranchCurve(store, run, branch));
  const rows = entries.map((entry) => {
    const summary = curves.get(entry.branch)!.find(({ step }) => step === entry.step);
    return toRow(entry, summary?.reward ?? null);
  });
  if (flags.json) printJson(output, rows);
  else if (rows.length === 0) output.line(`${run} has no checkpoints yet`);
  else output.line(render(rows));
  return EXIT.ok;
}

interface Row {
  readonly step: number;
  readonly branch: number;
  readonly reward: number | null;
  readonly eval: Readonly<Record<string, number | null>> | null;
  readonly adapterSha256: string;
  readonly manifestSha256: string;
  readonly bytes: number;
  readonly weights: CheckpointEntry['weights'];
}

function toRow({ step, branch, commit, evaluation, bytes, weights }: CheckpointEntry, reward: number | null): Row {
  const metrics = evaluation && { reward: evaluation.reward, ...evaluation.metrics };
  const { sha256, manifest } = commit;
  return {
    step,
    branch,
    reward,
    eval: metrics,
    adapterSha256: manifest.adapter.sha256,
    manifestSha256: sha256,
    bytes,
    weights,
  };
}

function render(rows: readonly Row[]): string {
  const metrics = sortMetrics(
    new Set(rows.flatMap((row) => Object.keys(row.eval ?? {})).filter((name) => name !== 'reward')),
  );
  const hasBranches = rows.some(({ branch }) => branch > 0);
  const hasEvals = rows.some((row) => row.eval !== null);
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
    ...(hasEvals ? [formatNumber(row.eval?.['reward'])] : []),
    ...metrics.map((name) => formatNumber(row.eval?.[name])),
    row.adapterSha256.slice(0, SHOWN_HASH),
    formatBytes(row.bytes),
    row.weights,
  ]);
  return createTable(head, cells);
}
