/**
 * The map of Temper: prepare → initialise → eval → steps → eval → done. A run is this workflow; where it stands is the
 * `position`, a value that the loop replaces and that continue-as-new hands on. Workflows decide, activities act.
 */
import { allHandlersFinished, condition, continueAsNew, workflowInfo } from '@temporalio/workflow';

import type { GroupResult, Prepared, RolloutInput, RunState } from '../core/contract.ts';
import { isEvaluationDue, planEvaluation } from '../core/plan-evaluation.ts';
import { planGroups, planInitialise, planNext, planReplacements, planTraining } from '../core/plan-step.ts';
import type { RunPosition } from '../core/plan-step.ts';
import { createRunActivities } from './activities.ts';
import { Board } from './board.ts';
import { createClock } from './clock.ts';
import { endBadly, isLearningOver } from './endings.ts';
import { goOn, isEvaluationMissing, rollBack } from './going-back.ts';
import { summariseStep } from '../core/run-summary.ts';
import { Judging } from './judging.ts';
import type { Run, TrainRunInput } from './run.ts';
import { Steering, type CarriedSteering } from './steering.ts';

export async function trainRun(input: TrainRunInput): Promise<RunState> {
  const run = openRun(input);
  run.steering.listen();

  try {
    const position = await takeSteps(run, input.carried?.position ?? (await startRun(run)));
    return await close(run, position);
  } catch (error) {
    return await endBadly(run.board, error);
  }
}

/** Between two steps a run hands itself on, goes back, rests or takes what else it was told; then it takes the next one. */
async function takeSteps(run: Run, start: RunPosition): Promise<RunPosition> {
  const { steering } = run;
  let position = start;
  while (await isToGoOn(run, position)) {
    if (isHistoryLong(run, position.step - start.step)) await carryOn(run, position);
    if (steering.rollback !== null) position = await rollBack(run, position, steering.rollback);
    else if (steering.settings !== null) await steering.takeSettings(position, steering.settings);
    else if (steering.isPaused) await steering.rest(() => workflowInfo().continueAsNewSuggested);
    else if (steering.isOverBudget) steering.pauseForBudget();
    else position = (await steering.interruptible(() => advance(run, position))) ?? position;
  }
  steering.end();
  return position;
}

async function isToGoOn(run: Run, position: RunPosition): Promise<boolean> {
  await condition(() => !run.board.isShowing);
  return run.steering.hasToTake || isUnfinished(run, position);
}

/** Agent and scenarios read, checkpoint 0 committed, the untrained policy evaluated. */
async function startRun(run: Run): Promise<RunPosition> {
  const { config, queues, activities, board } = run;
  board.waitFor('prepare', `read agent ${config.agent}`, queues.rollout);
  const prepared = await activities.prepare({ config });
  if (run.goOn) return startAgain(run, prepared);

  board.waitFor('initialise', `make the adapter of ${config.baseModel}`, queues.gpu);
  await board.record();
  const { checkpoint } = await activities.initialise(planInitialise(config, 0));

  board.update({ adapterSha256: checkpoint.adapterSha256 });
  const position = { branch: 0, prepared, step: 0, checkpoint, dealt: 0, emptySteps: 0 };
  await evaluate(run, position);
  return position;
}

async function startAgain(run: Run, prepared: Prepared): Promise<RunPosition> {
  const position = await goOn(run, prepared);
  if (isEvaluationMissing(run, position)) await evaluate(run, position);
  return position;
}

/** A step, and the evaluation that is due after it. */
async function advance(run: Run, position: RunPosition): Promise<RunPosition> {
  const next = await takeStep(run, position);
  if (isEvaluationDue(run.steering.wanted, next.step)) await evaluate(run, next);
  return next;
}

/** One step: plan → rollout × groups, each judged as soon as it is played → fresh groups for those without signal → train → committed. */
async function takeStep(run: Run, position: RunPosition): Promise<RunPosition> {
  const { queues, activities, board, steering, judging } = run;
  const { config } = steering;
  const step = position.step + 1;
  const clock = createClock();

  board.waitFor('rollout', `play ${config.judge ? 'and judge ' : ''}step ${step}`, queues.rollout);
  const played = await playGroups(run, planGroups(config, position));
  for (let round = 0; round < config.replacementRounds; round++) {
    played.push(...(await playGroups(run, planReplacements(config, position, played))));
  }
  clock.lap('rollout');

  const training = planTraining(config, position, played);
  board.waitFor('train', `train step ${step}`, queues.gpu);
  const trained = training && (await activities.train(training));
  clock.lap('train');

  const next = planNext(position, played, trained?.checkpoint ?? null);
  const judged = judging.takeStep();
  const summary = summariseStep({ config, position: next, played, judged, trained, seconds: clock.seconds() });
  board.stepped(summary, judging.spent);
  if (training === null) board.noteSkipped(summary);
  await board.record([summary]);
  return next;
}

async function playGroups(run: Run, plan: RolloutInput[]): Promise<GroupResult[]> {
  return Promise.all(plan.map((group) => playGroup(run, group)));
}

/** The agent's own reward is the verdict, and was given with the rollout; or a judge gives it. */
async function playGroup({ activities, judging }: Run, group: RolloutInput): Promise<GroupResult> {
  const played = await activities.rollout(group);
  return played.use === 'unjudged' ? judging.keep(await activities.judge({ group })) : played;
}

async function evaluate({ queues, activities, board, steering }: Run, position: RunPosition): Promise<void> {
  board.waitFor('eval', `evaluate the policy after step ${position.step}`, queues.rollout);
  board.evaluated(await activities.evaluate(planEvaluation(steering.wanted, position)));
  await board.record();
}

function openRun(input: TrainRunInput): Run {
  const { config, queues, carried } = input;
  const activities = createRunActivities(queues);
  const board = new Board(config, carried?.board ?? null, activities);
  const judging = new Judging(carried?.judging ?? null);
  const steering = new Steering(config, carried?.steering ?? toldAtStart(input), { board, activities, judging });
  return { ...input, activities, board, steering, judging };
}

function toldAtStart({ carried, goOn: again }: TrainRunInput): CarriedSteering {
  const { rollback = null, settings = null } = again ?? {};
  const told = {
    stop: carried?.stopping ?? false,
    pause: null,
    settings: settings === null ? [] : [{ values: settings, reason: rollback?.reason ?? null }],
    rollbacks: rollback === null ? [] : [rollback],
  };
  return { told, amendments: 0, lastRollback: null };
}

function isUnfinished({ board, steering }: Run, position: RunPosition): boolean {
  return position.step < steering.config.steps && !steering.told.stop && !isLearningOver(board, position);
}

function isHistoryLong({ config }: Run, steps: number): boolean {
  return workflowInfo().continueAsNewSuggested || steps >= (config.continueAsNewEvery ?? Infinity);
}

async function close({ board, steering }: Run, position: RunPosition): Promise<RunState> {
  await condition(allHandlersFinished);
  return board.close(position.step < steering.config.steps ? 'stopped' : 'completed');
}

/** Continue-as-new: nothing pending is left behind, and what was told until the last moment goes along. */
async function carryOn({ queues, board, steering, judging }: Run, position: RunPosition): Promise<void> {
  do {
    await board.recorded();
    await condition(allHandlersFinished);
  } while (board.isRecording);
  const carried = {
    position,
    board: board.carried(),
    stopping: steering.told.stop,
    steering: steering.carried(),
    judging: judging.carried(),
  };
  await continueAsNew<typeof trainRun>({ config: steering.config, queues, carried });
}
