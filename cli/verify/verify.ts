import { badConfig } from '../../core/contract/failures.ts';
import type { CheckpointName } from '../../core/names/policy-name.ts';
import type { Store } from '../../store/store.ts';
import type { Findings } from '../../store/records/verify/findings.ts';
import { verifyRun, type Verification } from '../../store/records/verify/verify-run.ts';
import { readCheckpointName } from '../command-line/values.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { plural } from '../../core/reports/format.ts';
import { printJson, type Output } from '../terminal/output.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { createTable } from '../terminal/table.ts';
import type { verifyCommand } from './command.ts';
import { readRecomputePlan } from './read-recompute-plan.ts';
import type { Recomputation } from './recompute.ts';

type Context = CommandContext<typeof verifyCommand>;

export async function verify(context: Context): Promise<number> {
  const { flags, args, project, env, output } = context;
  const { checkpoint } = args;
  const name = readCheckpointName(checkpoint);
  const { run } = name;
  if (flags['no-recompute'] && checkpoint !== run)
    throw badConfig(
      `${checkpoint} names the step to recompute, and --no-recompute skips recomputing; pass ${run}, or leave --no-recompute out`,
    );
  const store = await openProjectStore(project, env);
  const verification = await verifyRun(store, run);
  const again = flags['no-recompute'] ? null : await recomputeStep(context, store, name, verification);
  const { findings } = verification;
  const isOk = findings.problems.length === 0;
  if (flags.json) printJson(output, toJson(run, store.uri, findings, again));
  else print(output, run, findings, again);
  return isOk ? EXIT.ok : EXIT.failed;
}

/** Null if the step cannot be recomputed, with a note. A difference is a problem of the run. */
async function recomputeStep(
  context: Context,
  store: Store,
  name: CheckpointName,
  verification: Verification,
): Promise<Recomputation | null> {
  const { findings, config } = verification;
  const plan = await readRecomputePlan(store, name, verification, config);
  if (typeof plan === 'string') {
    findings.notes.push(plan);
    return null;
  }
  const { recompute } = await import('./recompute.ts');
  const { programContext } = await import('../terminal/stack-events.ts');
  const { project, env } = context;
  const { shardBaseModel } = (await loadConfig(project, env)).engine;
  const place = { project, storeUri: store.uri, shardBaseModel };
  const made = await recompute(plan, { ...place, ...programContext(context) });
  if (made.verdict === 'differs') findings.recomputed(plan.policy, made.text);
  return made;
}

function toJson(run: string, storeUri: string, findings: Findings, recomputed: Recomputation | null): object {
  const checks = Object.fromEntries(findings.tallies);
  const { problems, notes } = findings;
  return { run, store: storeUri, ok: problems.length === 0, checks, problems, notes, recomputed };
}

const MAX_SHOWN = 50;

function print(output: Output, run: string, { tallies, problems, notes }: Findings, again: Recomputation | null): void {
  const rows = [...tallies].map(([check, { checked, pruned, problems: wrong }]) => [
    check,
    String(checked),
    pruned === 0 ? '' : String(pruned),
    wrong === 0 ? '' : String(wrong),
  ]);
  output.line(createTable(['what', 'checked', 'pruned', 'wrong'], rows));
  if (again !== null) output.line(`re-computed ${again.text}`);
  for (const note of notes) output.line(`note: ${note}`);
  for (const { object, finding, remedy } of problems.slice(0, MAX_SHOWN))
    output.line(`wrong: ${object}: ${finding}; ${remedy}`);
  if (problems.length > MAX_SHOWN) output.line(`… and ${problems.length - MAX_SHOWN} more; see --json`);
  output.line(problems.length === 0 ? `${run} is intact` : `${run} has ${plural(problems.length, 'problem')}`);
}
