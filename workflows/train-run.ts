/**
 * The map of Temper: prepare → initialise → eval → steps → eval → done. A run is this workflow; where it stands is the
 * `position`, a value that the loop replaces and that continue-as-new hands on. Workflows decide, activities act.
 */
import { allHandlersFinished, condition, continueAsNew, workflowInfo } from '@temporalio/workflow';

import type {
  GroupResult,
  PlayGroupsInput,
  Prepared,
  RolloutInput,
  RunState,
  TrainInput,
  TrainResult,
} from '../core/contract.ts';
import { isEvaluationDue, planEvaluation } from '../core/plan-evaluation.ts';
import { isLargeStep, PENDING_ACTIVITIES, planBundles, withoutLongList } from '../core/large-step.ts';
import {
  dealMissing,
  planGroups,
  planInitialise,
  planJudging,
  planNext,
  planTraining,
  policiesAtStart,
  standAt,
  type PlayPosition,
  type RunPosition,
} from '../core/plan-step.ts';
import { fillDefaults, SCHEMA_DEFAULTS } from '../core/schema-defaults.ts';
import { isSupervisedOnly, isSupervisedStep } from '../core/supervised.ts';
import { createRunActivities } from './activities.ts';
import { Board } from './board.ts';
import { endBadly, isLearningOver } from './endings.ts';
import { goOn, isEvaluationMissing, rollBack } from './going-back.ts';
import { summariseStep } from '../core/run-summary.ts';
import { Judging } from './judging.ts';
import { takeOverlapping, type Halves } from './overlap.ts';
import type { Run, TrainRunInput } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';
import { takeSupervisedStep } from './supervised-step.ts';
import { Instructions, type CarriedInstructions } from './instructions.ts';

export async function trainRun(input: TrainRunInput): Promise<RunState> {
  const run = openRun(input);
  run.instructions.listen();

  try {
    const position = await takeSteps(run, input.carried?.position ?? (await startRun(run)));
    return await close(run, position);
  } catch (error) {
    return await endBadly(run.board, error);
  }
}

/** Between two steps a run hands itself on, goes back, rests or takes what else it was told; then it takes the next one. */
async function takeSteps(run: Run, start: RunPosition): Promise<RunPosition> {
  const { instructions } = run;
  let position = start;
  while (await isToGoOn(run, position)) {
    if (isHistoryLong(run, position.step - start.step)) await carryOn(run, position);
    if (instructions.rollback !== null) position = await rollBack(run, position, instructions.rollback);
    else if (instructions.settings !== null) await instructions.takeSettings(position, instructions.settings);
    else if (instructions.isPaused) await instructions.rest(() => workflowInfo().continueAsNewSuggested);
    else if (instructions.isOverBudget) instructions.pauseForBudget();
    else if (run.config.maxStaleness > 0)
      position = await takeOverlapping(run, position, HALVES, (step) => isHistoryLong(run, step - start.step));
    else position = (await instructions.interruptible(() => advance(run, position))) ?? position;
  }
  instructions.end();
  return position;
}

async function isToGoOn(run: Run, position: RunPosition): Promise<boolean> {
  await condition(() => !run.board.isShowing);
  return run.instructions.hasToTake || isUnfinished(run, position);
}

/** Agent and scenarios read, checkpoint 0 committed, the untrained policy evaluated. */
async function startRun(run: Run): Promise<RunPosition> {
  const { config, queues, activities, board } = run;
  board.waitFor('prepare', `read agent ${config.agent}`, queues.rollout);
  const prepared = await activities.prepare({ config });
  if (run.goOn !== null) return startAgain(run, prepared);

  board.waitFor('initialise', `make checkpoint 0 of ${config.baseModel}`, queues.gpu);
  await board.record();
  const { checkpoint } = await activities.initialise(planInitialise(config, 0));

  board.update({ adapterSha256: checkpoint.adapterSha256 });
  const policies = policiesAtStart(config, checkpoint);
  const position = standAt({ branch: 0, prepared, step: 0, checkpoint, policies, dealt: 0, emptySteps: 0 });
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
  const isSupervised = isSupervisedStep(run.instructions.config, position.step + 1);
  const next = await (isSupervised ? takeSupervisedStep(run, position) : takeStep(run, position));
  if (isEvaluationDue(run.instructions.wanted, next.step)) await evaluate(run, next);
  return next;
}

/** One step: plan → rollout × groups → judge → train → committed; its checkpoint activity runs beside the next step. */
async function takeStep(run: Run, position: RunPosition): Promise<RunPosition> {
  const inHand = run.board.begin(position.step + 1);
  try {
    const played = await judgeStep(run, inHand, position, await playStep(run, inHand, position));
    return await finishStep(run, inHand, position, played);
  } finally {
    run.board.leave(inHand);
  }
}

/** The same where steps overlap: what of it goes on beside the training of earlier steps, and what follows on that. */
const HALVES: Halves = {
  play: async (run, inHand, position) => judgeStep(run, inHand, position, await playStep(run, inHand, position)),
  async finish(run, inHand, position, played) {
    const next = await finishStep(run, inHand, position, played);
    run.board.leave(inHand);
    if (isEvaluationDue(run.instructions.wanted, next.step)) await evaluate(run, next);
    return next;
  },
};

/** A step that was played is trained and committed. */
async function finishStep(
  run: Run,
  inHand: StepInHand,
  position: RunPosition,
  played: GroupResult[],
): Promise<RunPosition> {
  const { board, judging } = run;
  const { config } = run.instructions;
  const trained = await trainStep(run, inHand, planTraining(config, position, played));

  const next = planNext(position, played, trained?.checkpoint ?? null);
  const { judged } = inHand;
  const seconds = inHand.seconds();
  const summary = summariseStep({ config, position: next, played, judged, trained, seconds });
  board.stepped(summary, judging.spent);
  if (trained === null) board.noteSkipped(summary);
  await board.checkpoint(summary);
  return next;
}

/** Each group is judged as soon as it is played, where a judge does it; fresh ones are dealt for those without signal. */
async function playStep(run: Run, inHand: StepInHand, position: PlayPosition): Promise<GroupResult[]> {
  const { config } = run.instructions;
  const work = `play ${config.judge === null ? '' : 'and judge '}step ${inHand.step}`;
  run.board.enter(inHand, 'rollout', work, run.queues.rollout);
  const played: GroupResult[] = [];
  for (let round = 0; round <= config.replacementRounds; round++) {
    played.push(...(await playMissing(run, inHand, position, played)));
  }
  return played;
}

/** All groups of a step in the first round. Of a large step, each activity plays several. */
function playMissing(run: Run, inHand: StepInHand, position: PlayPosition, played: GroupResult[]) {
  const { config } = run.instructions;
  if (!isLargeStep(config))
    return inWaves(planGroups(config, position, played), (group) => playGroup(run, inHand, group));
  const bundles = planBundles(dealMissing(config, position, played));
  return inWaves(bundles, (bundle) => playBundle(run, inHand, bundle)).then((results) => results.flat());
}

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

/** What is trained is decided by what stands in the store, not by what a rollout answered. */
async function judgeStep(
  { activities, board, instructions, judging, queues }: Run,
  inHand: StepInHand,
  position: PlayPosition,
  played: GroupResult[],
): Promise<GroupResult[]> {
  board.enter(inHand, 'judge', `decide what step ${inHand.step} trains`, queues.rollout);
  const { groups } = await activities.judge(planJudging(instructions.config, position, played));
  inHand.judged = judging.finish(inHand);
  return groups ?? played;
}

async function trainStep(
  { activities, board, config, queues }: Run,
  inHand: StepInHand,
  training: TrainInput | null,
): Promise<TrainResult | null> {
  if (training === null) return null;
  board.enter(inHand, 'train', `train step ${inHand.step}`, queues.gpu);
  return activities.train(withoutLongList(config, training));
}

/** The agent's own reward is the verdict, and was given with the rollout; or a judge gives it. */
async function playGroup({ activities, judging }: Run, inHand: StepInHand, group: RolloutInput): Promise<GroupResult> {
  const played = await activities.rollout(group);
  if (played.use !== 'unjudged') return played;
  const judged = await activities.judgeGroup({ group });
  judging.count(judged, inHand);
  return judged.group;
}

/** The same for several groups of a large step. */
async function playBundle({ activities, judging }: Run, inHand: StepInHand, bundle: PlayGroupsInput) {
  const { groups, spent, seconds } = await activities.playGroups(bundle);
  if (spent !== null) judging.count({ spent, seconds }, inHand);
  return groups;
}

/** Of an agent; what a supervised step says of held-out examples is part of its commit. */
async function evaluate({ queues, activities, board, instructions }: Run, position: RunPosition): Promise<void> {
  if (isSupervisedOnly(instructions.config)) return;
  board.waitFor('eval', `evaluate the policy after step ${position.step}`, queues.rollout);
  board.evaluated(await activities.evaluate(planEvaluation(instructions.wanted, position)));
  await board.record();
}

function openRun(input: TrainRunInput): Run {
  const { queues, carried } = input;
  const config = fillDefaults(input.config, SCHEMA_DEFAULTS);
  const activities = createRunActivities(queues);
  const board = new Board(config, carried?.board ?? null, activities);
  const judging = new Judging(carried?.judging ?? null);
  const instructions = new Instructions(config, carried?.instructions ?? toldAtStart(input), {
    board,
    activities,
    judging,
  });
  return { ...input, config, activities, board, instructions, judging };
}

function toldAtStart({ goOn: again }: TrainRunInput): CarriedInstructions {
  const { rollback, settings } = again ?? { rollback: null, settings: null };
  const told = {
    stop: false,
    pause: null,
    settings: settings === null ? [] : [{ values: settings, reason: rollback?.reason ?? null }],
    rollbacks: rollback === null ? [] : [rollback],
  };
  return { told, amendments: 0, lastRollback: null };
}

function isUnfinished({ board, instructions }: Run, position: RunPosition): boolean {
  return position.step < instructions.config.steps && !instructions.told.stop && !isLearningOver(board, position);
}

function isHistoryLong({ config }: Run, steps: number): boolean {
  return workflowInfo().continueAsNewSuggested || steps >= (config.continueAsNewEvery ?? Infinity);
}

async function close({ board, instructions }: Run, position: RunPosition): Promise<RunState> {
  await condition(allHandlersFinished);
  return board.close(position.step < instructions.config.steps ? 'stopped' : 'completed');
}

/** Continue-as-new: nothing pending is left behind, and what was told until the last moment goes along. */
async function carryOn({ queues, board, instructions, judging }: Run, position: RunPosition): Promise<void> {
  do {
    await board.recorded();
    await condition(allHandlersFinished);
  } while (board.isRecording);
  const carried = {
    position,
    board: board.carried(),
    instructions: instructions.carried(),
    judging: judging.carried(),
  };
  await continueAsNew<typeof trainRun>({ config: instructions.config, queues, carried, goOn: null });
}
