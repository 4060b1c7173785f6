/** A script's own loop for people: its curve and its state, made from the store whenever a step is over. */
import pLimit from 'p-limit';

import type { EvalResult, GroupResult, RunState, StepSummary, TrainResult } from '../../core/contract/contract.ts';
import { hintIfStalled } from '../../core/reports/learning-signal.ts';
import { planRoles, rewardRules } from '../../core/plan/step.ts';
import { summariseSupervised } from '../../core/plan/supervised.ts';
import { KEPT_EVALS, KEPT_NOTES, newRunState, NOT_JUDGED, summariseStep } from '../../core/plan/run-summary.ts';
import { warnOfLastStep } from '../../core/reports/training-warnings.ts';
import { onTheWire } from '../../store/records/runs/lineage.ts';
import { GROUPS_AT_ONCE } from '../../store/records/children.ts';
import { addToCurve } from '../../store/records/runs/curve.ts';
import { summariseGroup } from '../../store/records/groups/group-result.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { stateKey } from '../../store/layout.ts';
import { checkpointOf } from '../../store/records/runs/manifest.ts';
import { readCommit, readEval, readGroups, readState, readSteps } from '../../store/records/runs/run-reader.ts';
import type { LoopRun } from './loop-run.ts';

const WAITS_FOR = 'the next groups from the script that trains this run';

/** A step that was finished while nobody was left to write its line gets it now. */
export async function completeCurve(run: LoopRun): Promise<void> {
  run.curve = await readSteps(run.store, run.name);
  run.reward = run.curve.at(-1)?.reward ?? null;
  const known = new Set(run.curve.map(({ step }) => step));
  for (let step = 1; step <= run.step; step++)
    if (!known.has(step)) await addStep(run, step, await readTrainedGroups(run, step), {});
  run.curve.sort((a, b) => a.step - b.step);
}

/** Seconds of the step in the script, and of the trainer's phases; absent if not measured. */
interface StepSeconds {
  step?: number;
  trainer?: Record<string, number>;
}

/** `played` are the groups that the script gave to be trained. */
export async function addStep(run: LoopRun, step: number, played: GroupResult[], seconds: StepSeconds): Promise<void> {
  const summary = await summarise(run, step, played, seconds);
  await addToCurve(run.store, run.name, { branch: 0, step: Math.max(step, run.step) }, [summary], () => undefined);
  run.reward = summary.reward;
  run.curve.push(summary);
}

/** Warnings of `temper train` after such a step. They name flags, which are a script's options of the same names. */
export function printWarnings({ backend, name, curve }: LoopRun): void {
  for (const { text } of warnOfLastStep(curve)) backend.print(`${name}: warning: ${text.replaceAll(FLAG, nameOption)}`);
}

const FLAG = /--([a-z]+(?:-[a-z]+)*)/g;

function nameOption(_flag: string, name: string): string {
  return name.replaceAll(/-(.)/g, (_dash, letter: string) => letter.toUpperCase());
}

async function summarise(
  run: LoopRun,
  step: number,
  played: GroupResult[],
  { trainer = {}, ...others }: StepSeconds,
): Promise<StepSummary> {
  const seconds: Record<string, number> = others;
  const commit = await readCommit(run.store, { run: run.name, branch: 0, step });
  const checkpoint = commit === null ? run.checkpoint : checkpointOf(run.name, commit);
  const learningRate = commit?.manifest.learningRate ?? 0;
  const config = { ...run.config, groupsPerStep: played.length, learningRate };
  const trained: TrainResult | null = commit && {
    checkpoint,
    metrics: commit.manifest.metrics,
    seconds: trainer,
    found: true,
  };
  const supervised = commit?.manifest.supervised;
  if (trained !== null && supervised !== undefined)
    return summariseSupervised({ step, learningRate, supervised }, trained, seconds);
  return summariseStep({
    config,
    position: { step, parent: checkpoint },
    played,
    judged: NOT_JUDGED,
    trained,
    seconds,
  });
}

/** They have a verdict: it is published with the wish to train them. */
async function readTrainedGroups({ store, name, config }: LoopRun, step: number): Promise<GroupResult[]> {
  const place = { run: name, branch: 0, step };
  const rules = {
    ...rewardRules((await readCommit(store, place))?.manifest.train ?? config.train),
    ...planRoles(config),
  };
  const results: GroupResult[] = [];
  for (const { group, rollouts, judged, judgedSha256 } of await readGroups(store, place)) {
    if (judged === null || judgedSha256 === null) continue;
    const plan = { step, group, scenario: group, minimumGroupSize: config.minimumGroupSize, ...rules };
    results.push(summariseGroup(plan, rollouts, judged, judgedSha256));
  }
  return results;
}

export async function writeState(run: LoopRun, change: Partial<RunState>): Promise<void> {
  const before = (await readState(run.store, run.name)) ?? newRunState(run.config);
  const { evals, reward } = run;
  const last = evals.at(-1);
  const state: RunState = {
    ...before,
    state: 'running',
    phase: 'rollout',
    waitingFor: WAITS_FOR,
    step: run.step,
    steps: Math.max(1, run.step),
    reward,
    adapterSha256: run.checkpoint?.adapterSha256 ?? null,
    evals,
    evalBefore: evals.find(({ step }) => step === 0) ?? null,
    evalAfter: last !== undefined && last.step > 0 ? last : null,
    wallSeconds: run.secondsBefore + (performance.now() - run.openedAtMs) / 1000,
    ...change,
  };
  await run.store.replace(stateKey(run.name), encodeJson({ ...state, notes: state.notes.slice(-KEPT_NOTES) }));
}

/** The script's last word on a model whose reward stood still. */
export async function printStandstill(run: LoopRun): Promise<void> {
  const state = await readState(run.store, run.name);
  const hint = state && hintIfStalled(state, await readSteps(run.store, run.name));
  if (hint !== null) run.backend.print(`${run.name}: hint: ${hint}`);
}

/** Keeps the newest evaluation of each step, in order. */
export function addEval(run: LoopRun, evaluation: EvalResult): void {
  const result = onTheWire(evaluation);
  const { step } = result;
  const others = run.evals.filter((other) => other.step !== step);
  const [first, ...rest] = [...others, result].toSorted((a, b) => a.step - b.step);
  run.evals = [first!, ...rest.slice(1 - KEPT_EVALS)];
}

export async function readEvals(run: LoopRun): Promise<void> {
  const limit = pLimit(GROUPS_AT_ONCE);
  const read = (step: number) => limit(() => readEval(run.store, { run: run.name, branch: 0, step }));
  const found = await Promise.all(Array.from({ length: run.step + 1 }, (_, step) => read(step)));
  for (const result of found) if (result !== null) addEval(run, result);
}
