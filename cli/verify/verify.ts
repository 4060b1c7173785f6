import type { Store } from '../../store/store.ts';
import type { Findings } from '../../store/records/verify/findings.ts';
import type { Verification } from '../../store/records/verify/verify-run.ts';
import type { Command, CommandContext, Flags } from '../command-line/command.ts';
import { JSON_OPTION, stringFlag } from '../command-line/command.ts';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { plural } from '../terminal/format.ts';
import { printJson } from '../terminal/output.ts';
import type { Output } from '../terminal/output.ts';
import { openProjectStore } from '../connections/project-store.ts';
import { createTable } from '../terminal/table.ts';
import type { RecomputeChoice } from './read-recompute-plan.ts';
import type { Recomputation } from './recompute.ts';

export const verify: Command = {
  name: 'verify',
  summary: 'check every hash of a run, and recompute one step',
  usage: 'verify RUN [--step N] [--branch B] [--no-recompute] [--json]',
  details: [
    'Reads the store, writes nothing and needs no server. One step is recomputed from its recorded rollouts on this',
    'machine; on the platform that trained it, the bytes must match. Exit code 1 if a check fails.',
  ],
  positionals: ['RUN'],
  options: {
    step: { type: 'string', placeholder: 'N', description: 'step to recompute; default: the last one' },
    branch: { type: 'string', placeholder: 'B', description: 'branch of that step; default: the newest' },
    'no-recompute': { type: 'boolean', description: 'only check hashes; needs no Python' },
    json: JSON_OPTION,
  },
  async run(context) {
    const { flags, positionals, project, env, output } = context;
    const choice = parseChoice(flags);
    const { verifyRun } = await import('../../store/records/verify/verify-run.ts');
    const store = await openProjectStore(project, env);
    const verification = await verifyRun(store, positionals[0]!);
    const again = choice === null ? null : await recomputeStep(context, store, choice, verification);
    const { findings } = verification;
    const isOk = findings.problems.length === 0;
    if (flags['json'] === true) printJson(output, toJson(positionals[0]!, store.uri, findings, again));
    else print(output, positionals[0]!, findings, again);
    return isOk ? EXIT.ok : EXIT.failed;
  },
};

/** Null: no step is made again. */
function parseChoice(flags: Flags): RecomputeChoice | null {
  const choice = { step: parseCount(flags, 'step'), branch: parseCount(flags, 'branch') };
  if (flags['no-recompute'] !== true) return choice;
  const idle = (['step', 'branch'] as const).find((name) => choice[name] !== null);
  if (idle !== undefined)
    throw new UsageError(
      `--${idle} chooses the step to recompute, and --no-recompute skips recomputing; pass one of them`,
    );
  return null;
}

function parseCount(flags: Flags, name: string): number | null {
  const text = stringFlag(flags, name);
  if (text === null) return null;
  if (/^\d+$/.test(text)) return Number(text);
  throw new UsageError(`--${name} must be a whole number of at least 0, got ${JSON.stringify(text)}; pass --${name} 3`);
}

/** Null where it cannot be: a note says why. What differs is a problem of the run. */
async function recomputeStep(
  { positionals, project, env, signal, output }: CommandContext,
  store: Store,
  choice: RecomputeChoice,
  verification: Verification,
): Promise<Recomputation | null> {
  const { readRecomputePlan } = await import('./read-recompute-plan.ts');
  const { findings, config } = verification;
  const plan = await readRecomputePlan(store, positionals[0]!, verification, config, choice);
  if (typeof plan === 'string') {
    findings.notes.push(plan);
    return null;
  }
  const { recompute } = await import('./recompute.ts');
  const { openPythonEnvironment } = await import('../../workers/install/python-environment.ts');
  const { cacheFolder } = await import('../../workers/folders.ts');
  const { createEventPrinter } = await import('../terminal/stack-events.ts');
  const onEvent = createEventPrinter((line) => output.errorLine(line));
  const { python } = await openPythonEnvironment({ env, cache: cacheFolder(env), signal, onEvent });
  const made = await recompute(plan, { project, storeUri: store.uri, python, env, signal });
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
