/** A run of four steps that is played to be measured. */
import { WorkFailed } from '../../core/contract/failures.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { omitDefaults, SCHEMA_DEFAULTS } from '../../core/contract/schema-defaults.ts';
import { requireRun } from '../../store/records/runs/run-reader.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import { engineOverrides, type EngineFlags } from '../command-line/engine-flags.ts';
import { findExisting } from '../planning/find-existing.ts';
import { settleRun } from '../planning/draft-run.ts';
import type { RunPlan } from '../planning/run-plan.ts';
import { readPrices, type Basis } from './estimate-run.ts';
import { measureRun } from './measure.ts';

/**
 * The first step loads and compiles, and says little of the time of the next ones. Two steps are too few: one step's time is
 * a matter of luck, and attempts grow longer or shorter in the first steps (docs/log.md).
 */
const STEPS = 4;
/** Attempts of an evaluation that are played to measure one: as many as are played at once. */
const EVAL_SCENARIOS = 64;

/** Kept as a run of its own: the same settings are played once. */
export async function playProbe(context: CommandEnvironment, plan: RunPlan, asked: EngineFlags): Promise<Basis> {
  const { project, signal, env, output } = context;
  const config = toProbe(plan.config);
  const { run } = config;
  const found = { ...plan, config, ...(await findExisting(plan.store, config)) };
  const probe = found.existing === null ? await settleRun(found, asked, context) : found;
  if (!probe.isComplete) {
    const { playSession } = await import('../session/play-session.ts');
    const { createViewer } = await import('../watch/viewer.ts');
    const told = { ...output, isTerminal: false, line: (text: string) => output.errorLine(text) };
    const viewer = createViewer(told, { run, before: { state: null, steps: [] }, hint: '' });
    try {
      const overrides = engineOverrides(asked);
      await playSession({ plan: probe, project, viewer, signal, env, overrides, onLeft: () => undefined, targets: [] });
    } finally {
      viewer.close();
    }
  }
  const measured = await measureRun(plan.store, await requireRun(plan.store, run), await readPrices(context));
  if (measured === null) throw new WorkFailed(`the probe ${run} played no step; see temper show ${run}`);
  return { run, measured };
}

/** Without what acts over many steps, and without budgets. */
function toProbe({ supervised: _examples, ...config }: RunConfig): RunConfig {
  const probe = {
    ...config,
    run: 'probe',
    steps: Math.min(STEPS + config.maxStaleness, config.steps),
    evalEvery: 0,
    evalScenarios: Math.min(EVAL_SCENARIOS, config.evalScenarios),
    warmupSteps: 0,
    learningRateRestarts: 0,
    gpuUsdPerHour: null,
    maxCostUsd: null,
    maxHours: null,
  };
  return { ...probe, run: `probe-${hashOf(omitDefaults(probe, SCHEMA_DEFAULTS)).slice(0, 8)}` };
}
