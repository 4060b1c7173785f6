/**
 * The map of Temper: prepare → initialise → eval → steps → eval → done. A run is this workflow. Its `position` is a value
 * that the loop replaces and continue-as-new carries. Workflows decide, activities act.
 */
import { allHandlersFinished, condition, continueAsNew, workflowInfo } from '@temporalio/workflow';

import type {
  GroupResult,
  OpenGroup,
  Prepared,
  RolloutInput,
  RunState,
  TrainInput,
  TrainResult,
} from '../core/contract/contract.ts';
import { isAwaited } from '../core/rules/external-rewards.ts';
import { isEvaluationDue, planEvaluation } from '../core/plan/evaluation.ts';
import { leagueAtStart } from '../core/plan/league.ts';
import { planGathered, planGathering } from '../core/plan/production.ts';
import {
  isOverlapping,
  planInitialise,
  policiesAtStart,
  positionAt,
  type PlayPosition,
  type RunPosition,
} from '../core/plan/step.ts';
import {
  canChoose,
  chooseKnown,
  planJudging,
  planNext,
  planTopUp,
  planTraining,
  withPlayed,
  withResults,
} from '../core/plan/window.ts';
import { fillDefaults, SCHEMA_DEFAULTS } from '../core/contract/schema-defaults.ts';
import { planSupervised, positionAfter, summariseSupervised } from '../core/plan/supervised.ts';
import { isSupervisedOnly, isSupervisedStep } from '../core/rules/supervised.ts';
import { createRunActivities } from './activities.ts';
import { recordStep } from './record-step.ts';
import { RunStatus } from './run-status.ts';
import { failRun, isLearningOver } from './endings.ts';
import { isEvaluationMissing, resumeFromStore, rollBack } from './restore-position.ts';
import { summariseStep } from '../core/plan/run-summary.ts';
import { Costs, summariseJudging } from './costs.ts';
import { takeOverlapping, type StepStages } from './overlap.ts';
import type { Run, TrainRunInput } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';
import { startTracking } from './track-run.ts';
import { awaitWindow, closeStale, noteOpenGroups } from './window.ts';
import { RunControls, type CarriedControls } from './run-controls.ts';

/** A step's window once it is played, and the groups that leave it: null if the run is stopped before enough are complete. */
interface PlayedWindow {
  open: OpenGroup[];
  chosen: GroupResult[] | null;
}

export async function trainRun(input: TrainRunInput): Promise<RunState> {
  const run = openRun(input);
  run.controls.listen();
  if (input.track && input.carried === null) await startTracking(input.config.run, input.track);

  try {
    const position = await takeSteps(run, input.carried?.position ?? (await startRun(run)));
    return await close(run, position);
  } catch (error) {
    run.controls.showCosts();
    return await failRun(run.status, error);
  }
}

/** Between two steps, a run continues as new, rolls back, pauses or applies settings; then it takes the next step. */
async function takeSteps(run: Run, start: RunPosition): Promise<RunPosition> {
  const { controls } = run;
  let position = start;
  while (await shouldContinue(run, position)) {
    if (isHistoryLong(run, position.step - start.step)) await handOver(run, position);
    if (controls.pendingRollback !== null) position = await rollBack(run, position, controls.pendingRollback);
    else if (controls.pendingSettings !== null) await controls.applyPendingSettings(position, controls.pendingSettings);
    else if (controls.isPaused) await controls.waitWhilePaused(() => workflowInfo().continueAsNewSuggested);
    else if (controls.exceeded !== null) controls.pauseForBudget(controls.exceeded);
    else if (isOverlapping(run.config))
      position = await takeOverlapping(run, position, stepStages, (step) => isHistoryLong(run, step - start.step));
    else position = (await controls.interruptible(() => advance(run, position))) ?? position;
  }
  controls.end();
  return position;
}

async function shouldContinue(run: Run, position: RunPosition): Promise<boolean> {
  await condition(() => !run.status.isShowing);
  return run.controls.hasPending || isUnfinished(run, position);
}

/** Reads agent and scenarios, commits checkpoint 0 and evaluates the untrained policy. */
async function startRun(run: Run): Promise<RunPosition> {
  const { config, queues, activities, status } = run;
  status.waitFor('prepare', `read agent ${config.agent}`, queues.rollout);
  const prepared = await activities.prepare({ config });
  if (run.resume !== null) return resumeRun(run, prepared);

  status.waitFor('initialise', `make checkpoint 0 of ${config.baseModel}`, queues.gpu);
  await status.record();
  const { checkpoint } = await activities.initialise(planInitialise(config, 0));

  status.update({ adapterSha256: checkpoint.adapterSha256 });
  const policies = policiesAtStart(config, checkpoint);
  const position = positionAt({
    ...leagueAtStart(config, checkpoint),
    branch: 0,
    prepared,
    step: 0,
    checkpoint,
    policies,
    dealt: 0,
    emptySteps: 0,
  });
  await evaluate(run, position);
  return position;
}

async function resumeRun(run: Run, prepared: Prepared): Promise<RunPosition> {
  const position = await resumeFromStore(run, prepared);
  if (isEvaluationMissing(run, position)) await evaluate(run, position);
  return position;
}

/** A step, and the evaluation that is due after it. */
async function advance(run: Run, position: RunPosition): Promise<RunPosition> {
  const isSupervised = isSupervisedStep(run.controls.config, position.step + 1);
  const next = await (isSupervised ? takeSupervisedStep(run, position) : takeStep(run, position));
  // A step that was stopped while it waited for rewards was not taken.
  if (next.step > position.step && isEvaluationDue(run.controls.requestedConfig, next.step)) await evaluate(run, next);
  return next;
}

/** One step: plan → rollout × groups → judge → train → committed; its checkpoint activity runs beside the next step. */
async function takeStep(run: Run, position: RunPosition): Promise<RunPosition> {
  const inHand = run.status.beginStep(position.step + 1);
  try {
    const { open, chosen } = await playStep(run, inHand, position);
    // The run ends without the step, and says how many groups are open.
    if (chosen === null) return { ...position, open };
    return await finishStep(run, inHand, { ...position, open }, chosen);
  } finally {
    run.costs.countJudging(run.controls.config, inHand);
    run.status.endStep(inHand);
  }
}

/** The same for overlapping steps: `play` runs beside the training of earlier steps, `finish` follows it. */
const stepStages: StepStages = {
  async play(run, inHand, start) {
    const { open, chosen } = await playStep(run, inHand, start);
    return { position: { ...start, open }, chosen: chosen ?? [] };
  },
  async finish(run, inHand, position, chosen) {
    const next = await finishStep(run, inHand, position, chosen);
    run.status.endStep(inHand);
    if (isEvaluationDue(run.controls.requestedConfig, next.step)) await evaluate(run, next);
    return next;
  },
};

/** A step that trains examples: plan → train → committed. It plays no agent. */
async function takeSupervisedStep(run: Run, position: RunPosition): Promise<RunPosition> {
  const { activities, status, controls, queues } = run;
  const training = planSupervised(controls.config, position);
  const inHand = status.beginStep(training.step);
  try {
    status.enterPhase(inHand, 'train', `train step ${inHand.step}`, queues.gpu);
    const trained = await activities.train(training);
    const next = positionAfter(position, trained);
    await recordStep(run, inHand, next, summariseSupervised(training, trained, inHand.seconds()));
    return next;
  } finally {
    status.endStep(inHand);
  }
}

/** Trains and commits a step that was played: the groups that leave its window. */
async function finishStep(
  run: Run,
  inHand: StepInHand,
  position: RunPosition,
  chosen: GroupResult[],
): Promise<RunPosition> {
  const { config } = run.controls;
  const trained = await trainStep(run, inHand, planTraining(config, position, chosen));

  const next = planNext(config, position, chosen, trained?.checkpoint ?? null);
  const [judged, seconds] = [summariseJudging(inHand), inHand.seconds()];
  await recordStep(
    run,
    inHand,
    next,
    summariseStep({ config, position: next, played: chosen, judged, trained, seconds }),
  );
  return next;
}

/** Plays what the step's window lacks, waits for rewards from outside, and chooses the groups that leave it. */
async function playStep(run: Run, inHand: StepInHand, start: PlayPosition): Promise<PlayedWindow> {
  const before = await closeStale(run, start);
  const played = await (run.controls.config.production === undefined ? playWindow : gatherStep)(run, inHand, before);
  const window = await awaitWindow(run, inHand, played);
  if (!canChoose(run.controls.config, window)) return { open: window.open, chosen: null };
  const chosen = await judgeStep(run, inHand, window);
  return { open: withResults(window, chosen).open, chosen };
}

/** Groups are judged as soon as they are played, if the run has a judge; groups without signal are replaced. */
async function playWindow(run: Run, inHand: StepInHand, start: PlayPosition): Promise<PlayPosition> {
  const { config } = run.controls;
  const work = `play ${config.judge === null || isAwaited(config.judge) ? '' : 'and judge '}step ${inHand.step}`;
  run.status.enterPhase(inHand, 'rollout', work, run.queues.rollout);
  let window = start;
  for (let round = 0; round <= config.replacementRounds; round++) {
    const dealt = planTopUp(config, window);
    window = withPlayed(window, dealt, await inWaves(dealt, (group) => playGroup(run, inHand, group)));
  }
  return window;
}

/** Conversations that were recorded in production are the step's groups. */
async function gatherStep(run: Run, inHand: StepInHand, start: PlayPosition): Promise<PlayPosition> {
  run.status.enterPhase(inHand, 'rollout', `read the conversations of step ${inHand.step}`, run.queues.rollout);
  const gathering = planGathering(run.controls.config, start);
  return withPlayed(start, planGathered(gathering), (await run.activities.gather(gathering)).groups);
}

/** Most activities of a step that are pending at once: Temporal refuses more than 2,000 of one workflow. */
const PENDING_ACTIVITIES = 500;

async function inWaves<In, Out>(plan: readonly In[], play: (each: In) => Promise<Out>): Promise<Out[]> {
  if (plan.length <= PENDING_ACTIVITIES) return Promise.all(plan.map(play));
  const played: Out[] = [];
  const left = plan.entries();
  const playNext = async (): Promise<void> => {
    for (const [index, each] of left) played[index] = await play(each);
  };
  await Promise.all(Array.from({ length: PENDING_ACTIVITIES }, playNext));
  return played;
}

/** The store decides what is trained, not the answer of a rollout. */
async function judgeStep(
  { activities, status, controls, queues }: Run,
  inHand: StepInHand,
  window: PlayPosition,
): Promise<GroupResult[]> {
  status.enterPhase(inHand, 'judge', `decide what step ${inHand.step} trains`, queues.rollout);
  const { groups, usage } = await activities.judge(planJudging(controls.config, window));
  inHand.usage = usage;
  return groups ?? chooseKnown(controls.config, window);
}

async function trainStep(
  { activities, status, queues }: Run,
  inHand: StepInHand,
  training: TrainInput | null,
): Promise<TrainResult | null> {
  if (training === null) return null;
  status.enterPhase(inHand, 'train', `train step ${inHand.step}`, queues.gpu);
  return activities.train(training);
}

/** The verdict is the agent's own reward, which came with the rollout, or the judge's. */
async function playGroup({ activities }: Run, inHand: StepInHand, group: RolloutInput): Promise<GroupResult> {
  const played = await activities.rollout(group);
  if (played.use !== 'unjudged' || isAwaited(group.judge)) return played;
  const judged = await activities.judgeGroup({ group });
  inHand.judgings.push(judged);
  return judged.group;
}

/** Evaluates an agent. Supervised steps score held-out examples as part of their commit. */
async function evaluate({ queues, activities, status, controls, costs }: Run, position: RunPosition): Promise<void> {
  if (isSupervisedOnly(controls.config)) return;
  status.waitFor('eval', `evaluate the policy after step ${position.step}`, queues.rollout);
  const { usage, ...result } = await activities.evaluate(planEvaluation(controls.requestedConfig, position));
  status.addEvaluation(result);
  costs.countEvaluation({ usage });
  controls.showCosts();
  await status.record();
}

function openRun(input: TrainRunInput): Run {
  const { queues, carried } = input;
  const config = fillDefaults(input.config, SCHEMA_DEFAULTS);
  const activities = createRunActivities(queues);
  const status = new RunStatus(config, carried?.status ?? null, activities);
  const costs = new Costs(carried?.costs ?? null);
  const controls = new RunControls(config, carried?.controls ?? pendingAtStart(input), {
    status,
    activities,
    costs,
  });
  return { ...input, config, activities, status, controls, costs };
}

function pendingAtStart({ resume }: TrainRunInput): CarriedControls {
  const { rollback, settings } = resume ?? { rollback: null, settings: null };
  const requested = {
    stop: false,
    pause: null,
    settings: settings === null ? [] : [{ values: settings, reason: rollback?.reason ?? null }],
    rollbacks: rollback === null ? [] : [rollback],
  };
  return { requested, amendments: 0, lastRollback: null };
}

function isUnfinished({ status, controls }: Run, position: RunPosition): boolean {
  return position.step < controls.config.steps && !controls.requested.stop && !isLearningOver(status, position);
}

function isHistoryLong({ config }: Run, steps: number): boolean {
  return workflowInfo().continueAsNewSuggested || steps >= (config.continueAsNewEvery ?? Infinity);
}

async function close(run: Run, position: RunPosition): Promise<RunState> {
  const { status, controls } = run;
  if (isUnevaluatedEnd(run, position)) await evaluate(run, position);
  noteOpenGroups(run, position);
  await condition(allHandlersFinished);
  controls.showCosts();
  return status.close(position.step < controls.config.steps ? 'stopped' : 'completed');
}

/** A run that ended early, because its steps trained nothing any more, has a result that no evaluation has seen. */
function isUnevaluatedEnd({ status, controls }: Run, { step, parent }: RunPosition): boolean {
  if (step >= controls.config.steps || controls.requested.stop) return false;
  return parent.step > (status.state.evals.at(-1)?.step ?? 0);
}

/** Continues as new, with every pending write done and every request carried along. */
async function handOver({ queues, status, controls, costs }: Run, position: RunPosition): Promise<void> {
  controls.showCosts();
  do {
    await status.recorded();
    await condition(allHandlersFinished);
  } while (status.isRecording);
  const carried = {
    position,
    status: status.carried(),
    controls: controls.carried(),
    costs: costs.carried(),
  };
  await continueAsNew<typeof trainRun>({ config: controls.config, queues, carried, resume: null });
}
