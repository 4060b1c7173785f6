/**
 * Steps that overlap (`--max-staleness` n): while a step trains, the next ones are played, n of them at most. Each samples
 * from the checkpoint that the plan names, s − 1 − n, so it waits for that one and for no newer one: how fast either side
 * is changes nothing but the time it takes. Steps are played in order, since each deals on where the one before it
 * stopped, and trained in order. Before anything else is done (an instruction, continue-as-new, the end), what was begun
 * is played and trained to its end.
 */
import { CancellationScope } from '@temporalio/workflow';

import type { GroupResult } from '../core/contract/contract.ts';
import { EMPTY_STEPS_LIMIT, type PlayPosition, type RunPosition } from '../core/plan/step.ts';
import { planAhead } from '../core/plan/window.ts';
import type { RunActivities } from './activities.ts';
import type { Run } from './run.ts';
import type { StepInHand } from './step-in-hand.ts';
import { LaneOrder } from './lane-order.ts';

/** The two stages of a step. */
export interface StepStages {
  /** Everything up to the verdict, which says what is trained. */
  play(run: Run, inHand: StepInHand, position: PlayPosition): Promise<PlayedStep>;
  /** Everything from training on, the evaluation that is due included. */
  finish(run: Run, inHand: StepInHand, position: RunPosition, chosen: GroupResult[]): Promise<RunPosition>;
}

/** A step with its window, and the groups that leave it. */
interface PlayedStep {
  position: PlayPosition;
  chosen: GroupResult[];
}

/** Takes steps until the history is long or something else is due; returns the position after the last finished one. */
export async function takeOverlapping(
  run: Run,
  start: RunPosition,
  stages: StepStages,
  isHistoryLong: (step: number) => boolean,
): Promise<RunPosition> {
  const { status, controls } = run;
  const turns = new LaneOrder(() => !status.isShowing);
  const inTurns = { ...run, activities: takeTurns(run.activities, turns) };
  const overlap = new Overlap(inTurns, start, stages, turns);
  status.turns = turns;
  try {
    await controls.interruptible(() => overlap.run(isHistoryLong));
  } finally {
    status.turns = null;
    overlap.giveUp();
  }
  return overlap.finished;
}

class Overlap {
  readonly #run: Run;
  readonly #stages: StepStages;
  readonly #turns: LaneOrder;
  /** The policies that the next steps sample from, in order. */
  readonly #policies: Promise<RunPosition['policy']>[];
  /** The position after the newest step that was played, once all of them are trained. */
  #training: Promise<RunPosition>;
  #inHand: StepInHand[] = [];
  #finished: RunPosition;
  #scope: CancellationScope | null = null;

  constructor(run: Run, start: RunPosition, stages: StepStages, turns: LaneOrder) {
    this.#run = run;
    this.#stages = stages;
    this.#turns = turns;
    this.#policies = [start.policy, ...(start.upcoming ?? [])].map((policy) => Promise.resolve(policy));
    this.#training = Promise.resolve(start);
    this.#finished = start;
  }

  get finished(): RunPosition {
    return this.#finished;
  }

  async run(isHistoryLong: (step: number) => boolean): Promise<void> {
    // A child of the caller's scope: cancellation and rollbacks reach both stages.
    const scope = new CancellationScope();
    this.#scope = scope;
    const [played] = await Promise.allSettled([scope.run(() => this.#play(this.#finished, isHistoryLong))]);
    // A step that failed to train is why others were given up; one that failed to be played lets the others finish.
    await this.#training;
    if (played.status === 'rejected') throw played.reason;
  }

  /** Ends the steps that were begun and will not be finished. */
  giveUp(): void {
    const { costs, controls, status } = this.#run;
    for (const inHand of this.#inHand) {
      costs.countJudging(controls.config, inHand);
      status.endStep(inHand);
    }
  }

  async #play(start: PlayPosition, isHistoryLong: (step: number) => boolean): Promise<void> {
    let position = start;
    for (;;) {
      const policy = await this.#policies.shift()!;
      await this.#turns.take('play', async () => Promise.resolve());
      if (!this.#mayBegin(position) || isHistoryLong(position.step)) return;
      const inHand = this.#run.status.beginStep(position.step + 1, policy);
      this.#inHand.push(inHand);
      const played = await this.#stages.play(this.#run, inHand, { ...position, policy });
      inHand.rest();
      this.#train(inHand, played);
      position = planAhead(played.position, played.chosen, policy);
    }
  }

  #train(inHand: StepInHand, { position: { open }, chosen }: PlayedStep): void {
    const before = this.#training;
    const finish = async (): Promise<RunPosition> => {
      const position = await before;
      this.#finished = await this.#stages.finish(this.#run, inHand, { ...position, open }, chosen);
      this.#inHand = this.#inHand.filter((other) => other !== inHand);
      return this.#finished;
    };
    this.#training = finish();
    this.#training.catch(() => this.#scope?.cancel());
    const newest = this.#training.then(({ parent }) => parent);
    // Its failure is thrown where it is awaited.
    newest.catch(() => undefined);
    this.#policies.push(newest);
  }

  /** Decides on played steps alone: whether a step is already trained depends on timing. */
  #mayBegin({ step, emptySteps }: PlayPosition): boolean {
    const { config, requested, hasPending, isPaused, isOverBudget } = this.#run.controls;
    const isOver = step >= config.steps || requested.stop || emptySteps >= EMPTY_STEPS_LIMIT;
    return !isOver && !hasPending && !isPaused && !isOverBudget;
  }
}

function takeTurns(activities: RunActivities, turns: LaneOrder): RunActivities {
  return {
    ...activities,
    rollout: (input) => turns.take('play', () => activities.rollout(input)),
    judgeGroup: (input) => turns.take('play', () => activities.judgeGroup(input)),
    judge: (input) => turns.take('play', () => activities.judge(input)),
    train: (input) => turns.take('train', () => activities.train(input)),
    evaluate: (input) => turns.take('train', () => activities.evaluate(input)),
  };
}
