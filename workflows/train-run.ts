/**
 * The map of Temper: prepare → initialise → eval → steps → eval → done. A run is this workflow; where it stands is the
 * `position`, a value that the loop replaces and that continue-as-new hands on. Workflows decide, activities act.
 */
import { allHandlersFinished, condition, continueAsNew, setHandler, workflowInfo } from '@temporalio/workflow';

import type { GroupResult, RolloutInput, RunConfig, RunState } from '../core/contract.ts';
import { isEvaluationDue, planEvaluation } from '../core/plan-evaluation.ts';
import { planGroups, planInitialise, planNext, planReplacements, planTraining } from '../core/plan-step.ts';
import type { RunPosition } from '../core/plan-step.ts';
import { createRunActivities, type RunActivities, type RunQueues } from './activities.ts';
import { Board, type CarriedBoard } from './board.ts';
import { createClock } from './clock.ts';
import { endBadly, isLearningOver } from './endings.ts';
import { progressQuery, refuseBadStop, stopUpdate, type StopAnswer, type StopRequest } from './messages.ts';
import { describeUnused, summariseStep } from './run-summary.ts';

/** No secret, no path: what is here stands in the history for everybody to read. */
export interface TrainRunInput {
  config: RunConfig;
  queues: RunQueues;
  /** Null at the start. */
  carried: CarriedRun | null;
}

/** What a run hands on at continue-as-new. */
interface CarriedRun {
  position: RunPosition;
  board: CarriedBoard;
  stopping: boolean;
}

interface Run extends TrainRunInput {
  activities: RunActivities;
  board: Board;
  /** Handlers write it and the loop only reads it, so nothing that was told is lost between two awaits. */
  told: { stop: boolean };
}

export async function trainRun(input: TrainRunInput): Promise<RunState> {
  const run = openRun(input);
  setHandler(progressQuery, () => run.board.state);
  setHandler(stopUpdate, (request) => stop(run, request), { validator: refuseBadStop });

  try {
    const position = await takeSteps(run, input.carried?.position ?? (await startRun(run)));
    return await run.board.close(position.step < input.config.steps ? 'stopped' : 'completed');
  } catch (error) {
    return await endBadly(run.board, error);
  }
}

async function takeSteps(run: Run, start: RunPosition): Promise<RunPosition> {
  const { config, board, told } = run;
  let position = start;
  while (position.step < config.steps && !told.stop && !isLearningOver(board, position)) {
    if (isHistoryLong(run, position.step - start.step)) await carryOn(run, position);
    position = await takeStep(run, position);
    if (isEvaluationDue(config, position.step)) await evaluate(run, position);
  }
  return position;
}

/** Agent and scenarios read, checkpoint 0 committed, the untrained policy evaluated. */
async function startRun(run: Run): Promise<RunPosition> {
  const { config, queues, activities, board } = run;
  board.waitFor('prepare', `read agent ${config.agent}`, queues.rollout);
  const prepared = await activities.prepare({ config });

  board.waitFor('initialise', `make the adapter of ${config.baseModel}`, queues.gpu);
  await board.record();
  const { checkpoint } = await activities.initialise(planInitialise(config, 0));

  board.update({ adapterSha256: checkpoint.adapterSha256 });
  const position = { branch: 0, prepared, step: 0, checkpoint, dealt: 0, emptySteps: 0 };
  await evaluate(run, position);
  return position;
}

/** One step: plan → rollout × groups (each judges itself) → fresh groups for those without signal → train → committed. */
async function takeStep(run: Run, position: RunPosition): Promise<RunPosition> {
  const { config, queues, activities, board } = run;
  const step = position.step + 1;
  const clock = createClock();

  board.waitFor('rollout', `play step ${step}`, queues.rollout);
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
  const summary = summariseStep({ config, position: next, played, trained, seconds: clock.seconds() });
  board.stepped(summary);
  if (training === null) board.noteEmptyStep(step, describeUnused(played));
  await board.record([summary]);
  return next;
}

async function playGroups({ activities }: Run, plan: RolloutInput[]): Promise<GroupResult[]> {
  return Promise.all(plan.map((group) => activities.rollout(group)));
}

async function evaluate({ config, queues, activities, board }: Run, position: RunPosition): Promise<void> {
  board.waitFor('eval', `evaluate the policy after step ${position.step}`, queues.rollout);
  board.evaluated(await activities.evaluate(planEvaluation(config, position)));
  await board.record();
}

function openRun(input: TrainRunInput): Run {
  const { config, queues, carried } = input;
  const activities = createRunActivities(queues);
  const board = new Board(config, carried?.board ?? null, activities);
  return { ...input, activities, board, told: { stop: carried?.stopping ?? false } };
}

function stop({ board, told }: Run, { reason }: StopRequest): StopAnswer {
  const first = !told.stop;
  told.stop = true;
  if (first) board.stopping(reason);
  return { first, afterStep: board.stepInHand };
}

function isHistoryLong({ config }: Run, steps: number): boolean {
  return workflowInfo().continueAsNewSuggested || steps >= (config.continueAsNewEvery ?? Infinity);
}

/** Continue-as-new: nothing pending is left behind, and what was told until the last moment goes along. */
async function carryOn({ config, queues, board, told }: Run, position: RunPosition): Promise<void> {
  await board.recorded();
  await condition(allHandlersFinished);
  const carried = { position, board: board.carried(), stopping: told.stop };
  await continueAsNew<typeof trainRun>({ config, queues, carried });
}
