/** A script's own loop for people: its curve and its state, made from the store whenever a step is over. */
import type { EvalResult, GroupResult, RunState, StepSummary, TrainResult } from '../../core/contract.ts';
import { newRunState, summariseStep } from '../../core/run-summary.ts';
import { addToCurve } from '../../store/curve.ts';
import { summariseGroup } from '../../store/group-result.ts';
import { encodeJson } from '../../store/json.ts';
import { judgedKey, stateKey } from '../../store/layout.ts';
import { checkpointOf } from '../../store/manifest.ts';
import { readCommit, readEval, readGroups, readState, readSteps } from '../../store/run-reader.ts';
import { hashBytes } from '../../store/sha256.ts';
import type { LoopRun } from './loop-run.ts';

const MAX_NOTES = 50;
const WAITS_FOR = 'the next groups of the script that owns this loop';

/** A step that was finished while nobody was left to write its line gets it now. */
export async function completeCurve(run: LoopRun): Promise<void> {
  const written = new Set((await readSteps(run.store, run.name)).map(({ step }) => step));
  for (let step = 1; step <= run.step; step++) if (!written.has(step)) await addStep(run, step, {});
}

/** Of the step as the script saw it, and of the trainer's phases; none where nobody measured. */
interface StepSeconds {
  step?: number;
  trainer?: Record<string, number>;
}

export async function addStep(run: LoopRun, step: number, seconds: StepSeconds): Promise<void> {
  const summary = await summarise(run, step, seconds);
  await addToCurve(run.store, run.name, { branch: 0, step: Math.max(step, run.step) }, [summary], () => undefined);
}

async function summarise(run: LoopRun, step: number, { trainer = {}, ...others }: StepSeconds): Promise<StepSummary> {
  const seconds: Record<string, number> = others;
  const commit = await readCommit(run.store, { run: run.name, branch: 0, step });
  const played = await readTrainedGroups(run, step);
  const checkpoint = commit === null ? run.checkpoint : checkpointOf(run.name, commit);
  const learningRate = commit?.manifest.learningRate ?? 0;
  const config = { ...run.config, groupsPerStep: played.length, learningRate };
  const trained: TrainResult | null = commit && {
    checkpoint,
    metrics: commit.manifest.metrics,
    seconds: trainer,
    found: true,
  };
  return summariseStep({ config, position: { step, checkpoint }, played, trained, seconds });
}

/** Those that the script gave to be trained: they have a verdict. */
async function readTrainedGroups({ store, name, config }: LoopRun, step: number): Promise<GroupResult[]> {
  const place = { run: name, branch: 0, step };
  const results: GroupResult[] = [];
  for (const { group, rollouts, judged } of await readGroups(store, place)) {
    const bytes = judged && (await store.read(judgedKey({ ...place, group })));
    if (judged === null || bytes === null) continue;
    const plan = { step, group, scenario: group, minimumGroupSize: config.minimumGroupSize };
    results.push(summariseGroup(plan, rollouts, judged, hashBytes(bytes)));
  }
  return results;
}

export async function writeState(run: LoopRun, change: Partial<RunState>): Promise<void> {
  const before = (await readState(run.store, run.name)) ?? newRunState(run.config);
  const evals = await readEvals(run);
  const last = evals.at(-1);
  const curve = await readSteps(run.store, run.name);
  const state: RunState = {
    ...before,
    state: 'running',
    phase: 'rollout',
    waitingFor: WAITS_FOR,
    step: run.step,
    steps: Math.max(1, run.step),
    reward: curve.at(-1)?.reward ?? null,
    adapterSha256: run.checkpoint?.adapterSha256 ?? null,
    evals,
    evalBefore: evals.find(({ step }) => step === 0) ?? null,
    evalAfter: last !== undefined && last.step > 0 ? last : null,
    wallSeconds: run.secondsBefore + (Date.now() - run.openedAtMs) / 1000,
    ...change,
  };
  await run.store.replace(stateKey(run.name), encodeJson({ ...state, notes: state.notes.slice(-MAX_NOTES) }));
}

async function readEvals({ store, name, step: last }: LoopRun): Promise<EvalResult[]> {
  const steps = Array.from({ length: last + 1 }, (_, step) => step);
  const found = await Promise.all(steps.map((step) => readEval(store, { run: name, branch: 0, step })));
  return found.flatMap((result) => {
    if (result === null) return [];
    const { step, attempts, failed, reward, metrics, rolloutsSha256 } = result;
    return [{ step, attempts, failed, reward, metrics, rolloutsSha256 }];
  });
}
