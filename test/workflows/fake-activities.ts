/**
 * The activities of a run, in memory: write-once under their input's hash as the real ones are, and with numbers
 * that depend on inputs only, so that two runs of one plan can be compared. Inputs are parsed by the contract's schemas.
 */
import { ApplicationFailure, Context } from '@temporalio/activity';

import {
  AmendInput,
  CheckpointInput,
  EvaluateInput,
  GatherInput,
  InitialiseInput,
  JudgeGivenInput,
  JudgeGroupInput,
  JudgeInput,
  LocateInput,
  PrepareInput,
  PromoteInput,
  RecordInput,
  RolloutInput,
  TrainInput,
  type Branch,
  type CostLedger,
  type EvalResult,
  type GroupResult,
  type JudgeSpending,
  type Located,
  type Position,
  type RunState,
  type StepSummary,
  type TrainResult,
} from '../../core/contract/contract.ts';
import { EMPTY_LEDGER } from '../../core/rules/costs.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { NOTHING_SPENT as NOTHING } from '../../core/rules/judge-spending.ts';
import { planFiring } from '../../core/plan/firing.ts';
import { branchOfStep, planLineage } from '../../core/names/lineage.ts';
import { chooseFirst, hashJudging } from '../../core/plan/window.ts';
import type { AgentActivities, GpuActivities, ScheduleActivities } from '../../workflows/activities.ts';
import { gatherGroups } from './fake-gather.ts';
import { lookAtGiven } from './fake-given.ts';
import { commit, evaluatePolicy, fakePrepared, playGroup } from './fake-results.ts';

export interface FakeOptions {
  trainScenarios?: number;
  /** Staleness of the run in its store. */
  maxStaleness?: number;
  /** The use of a group; by default all groups are trained. */
  use?: (input: RolloutInput) => GroupResult['use'];
  /** Attempts of a group that lack a reward from outside; 0: it is decided. */
  missing?: (place: { step: number; group: number }) => number;
  /** The cost of a group's judging. */
  spent?: (input: RolloutInput) => JudgeSpending;
  /** Called at the beginning of each execution, retries included: to wait, to throw. */
  before?: (name: ActivityName, input: unknown) => Promise<void> | void;
  /** Called when the work is done and its result is published: to die between commit and answer. */
  after?: (name: ActivityName, input: unknown) => Promise<void> | void;
}

interface FakeBranch extends Branch {
  requestId: string;
  costs: CostLedger;
}

export type ActivityName = keyof (AgentActivities & GpuActivities);

export interface FakeRun {
  agent: AgentActivities;
  gpu: GpuActivities;
  /** A schedule's only firing. */
  schedule: ScheduleActivities;
  /** Inputs whose work was done, in order of their end; a retry that found its result adds none. */
  done: { name: ActivityName; input: unknown }[];
  states: RunState[];
  summaries: StepSummary[];
  rollouts: RolloutInput[];
  trainings: TrainInput[];
  evaluations: EvaluateInput[];
  judgings: RolloutInput[];
  /** Looks at rewards from outside. */
  looks: JudgeGivenInput[];
  amendments: AmendInput[];
}

export function createFakeRun(given: FakeOptions = {}): FakeRun {
  // An activity that a test holds ends with its worker, even if the test has failed: gates need not be opened.
  const options: FakeOptions = {
    ...given,
    before: (name, input) => Promise.race([given.before?.(name, input), Context.current().cancelled]),
  };
  /** After finished steps, by branch and step. */
  const positions = new Map<string, Position>();
  const published = new Map<string, { inputs: unknown; result: unknown }>();
  const run: Omit<FakeRun, 'agent' | 'gpu' | 'schedule'> = {
    done: [],
    states: [],
    summaries: [],
    rollouts: [],
    trainings: [],
    evaluations: [],
    judgings: [],
    looks: [],
    amendments: [],
  };

  /** Results as in the store: the first under a key stays, and other inputs under the same key are a conflict. */
  async function once<I extends { run: string; inputsSha256: string }, T>(
    name: ActivityName,
    place: string,
    input: I,
    make: (input: I) => T,
  ): Promise<T> {
    await options.before?.(name, input);
    const key = `${input.run}/${place}`;
    const found = published.get(key);
    if (found !== undefined && found.inputs !== input.inputsSha256) {
      throw ApplicationFailure.nonRetryable(`${key} was made from ${String(found.inputs)}`, 'StepConflict');
    }
    const result = found === undefined ? make(input) : (found.result as T);
    if (found === undefined) {
      published.set(key, { inputs: input.inputsSha256, result });
      run.done.push({ name, input });
    }
    await options.after?.(name, input);
    return result;
  }

  const agent: AgentActivities = {
    async prepare(input) {
      PrepareInput.parse(input);
      await options.before?.('prepare', input);
      run.done.push({ name: 'prepare', input });
      return fakePrepared(options.trainScenarios ?? 6);
    },
    rollout: (input) =>
      once('rollout', `${input.branch}/${input.step}/${input.group}`, RolloutInput.parse(input), (group) => {
        run.rollouts.push(group);
        return playGroup(group, group.judge === null ? (options.use?.(group) ?? 'trained') : 'unjudged');
      }),
    async judgeGroup(input) {
      const { group } = JudgeGroupInput.parse(input);
      await options.before?.('judgeGroup', input);
      run.judgings.push(group);
      return {
        group: playGroup(group, options.use?.(group) ?? 'trained'),
        spent: options.spent?.(group) ?? NOTHING,
        seconds: 1,
      };
    },
    async judgeGiven(input) {
      const asked = JudgeGivenInput.parse(input);
      await options.before?.('judgeGiven', input);
      run.looks.push(asked);
      const judge = (group: RolloutInput) => playGroup(group, options.use?.(group) ?? 'trained');
      const looked = lookAtGiven(asked, run.rollouts, options.missing, judge);
      await options.after?.('judgeGiven', input);
      return looked;
    },
    async gather(input) {
      await options.before?.('gather', input);
      run.done.push({ name: 'gather', input });
      return { groups: gatherGroups(GatherInput.parse(input)) };
    },
    evaluate: (input) =>
      once('evaluate', `eval/${input.branch}/${input.step}`, EvaluateInput.parse(input), () => {
        run.evaluations.push(input);
        return evaluatePolicy(input);
      }),
    judge: (input) =>
      once('judge', `judge/${input.branch}/${input.step}`, JudgeInput.parse(input), ({ window, step, most }) => {
        if (run.done.some(({ name }) => name === 'gather')) return { groups: null };
        if (input.inputsSha256 !== hashJudging(input))
          throw ApplicationFailure.nonRetryable('other groups were played');
        const decided = window.flatMap(({ judgedSha256, isStale, group, step: dealtAt = step }) => {
          const dealt = run.rollouts.findLast((each) => each.step === dealtAt && each.group === group)!;
          if (judgedSha256 === null) return [];
          return [playGroup(dealt, isStale ? 'stale' : (options.use?.(dealt) ?? 'trained'))];
        });
        const groups = chooseFirst(most, decided);
        return { groups: hashOf(groups) === input.resultsSha256 ? null : groups };
      }),
    async record(input) {
      RecordInput.parse(input);
      await options.before?.('record', input);
      run.states.push(input.state);
    },
    async checkpoint(input) {
      CheckpointInput.parse(input);
      await options.before?.('checkpoint', input);
      run.states.push(input.state);
      run.summaries.push(input.summary);
      positions.set(`${input.position.branch}/${input.position.step}`, input.position);
    },
    amend: (input) => steering.amend(input),
    locate: (input) => steering.locate(input),
  };
  /** Before the first step. */
  const beginning = (name: string): Position => {
    const { checkpoint } = published.get(`${name}/step/0/0`)!.result as TrainResult;
    const policies = Array.from({ length: (options.maxStaleness ?? 0) + 1 }, () => checkpoint);
    return { branch: 0, step: 0, checkpoint, policies, dealt: 0, open: [], emptySteps: 0, costs: EMPTY_LEDGER };
  };
  const startOf = (name: string, made: FakeBranch | undefined): Position => {
    const position = positions.get(`${made?.fromBranch}/${made?.fromStep}`) ?? beginning(name);
    if (made === undefined) return position;
    const policies = position.policies.map(() => position.checkpoint);
    return { ...position, branch: made.branch, policies, emptySteps: 0, costs: made.costs };
  };
  const locate = ({ run: name }: { run: string }, position: Position): Located => {
    const lineage = planLineage(branches, position.branch).map(({ branch, fromBranch, fromStep }) => {
      return { branch, fromBranch, fromStep };
    });
    const steps = Array.from({ length: position.step + 1 }, (_, step) => step);
    const evals = steps.flatMap((step) => {
      const found = published.get(`${name}/eval/${branchOfStep(lineage, step)}/${step}`)?.result;
      return found === undefined ? [] : [found as EvalResult];
    });
    const changes = run.amendments.flatMap((amendment) => amendment.changes);
    return { ...position, lineage, evals, changes, amendments: run.amendments.length };
  };
  const newest = ({ run: name }: { run: string }): Position => {
    const made = branches.at(-1);
    const own = [...positions.values()].filter(({ branch }) => branch === (made?.branch ?? 0));
    return own.toSorted((one, other) => one.step - other.step).at(-1) ?? startOf(name, made);
  };
  /** Branches as the store keeps them: one for each request. */
  const branches: FakeBranch[] = [];
  const steering: Pick<AgentActivities, 'amend' | 'locate'> = {
    async amend(input) {
      AmendInput.parse(input);
      await options.before?.('amend', input);
      run.amendments[input.number - 1] ??= input;
    },
    async locate(input) {
      const { rollback } = LocateInput.parse(input);
      await options.before?.('locate', input);
      if (rollback === null) return locate(input, newest(input));
      const made = branches.find(({ requestId }) => requestId === rollback.requestId);
      if (made !== undefined) return locate(input, startOf(input.run, made));
      const { requestId, step, costs } = rollback;
      const branch = branches.at(-1)?.branch ?? 0;
      const fromBranch = branchOfStep(planLineage(branches, branch), step);
      const next = { branch: branch + 1, fromBranch, fromStep: step, requestId, costs };
      branches.push(next);
      return locate(input, startOf(input.run, next));
    },
  };
  const gpu: GpuActivities = {
    initialise: (input) =>
      once('initialise', 'step/0/0', InitialiseInput.parse(input), () => commit(input, 0, input.inputsSha256, 0)),
    train: (input) =>
      once('train', `step/${input.branch}/${input.step}`, TrainInput.parse(input), (training) => {
        run.trainings.push(training);
        return commit(training, training.step, training.inputsSha256, training.learningRate);
      }),
  };
  const schedule: ScheduleActivities = {
    allocate: async ({ config, from }) =>
      Promise.resolve({ number: 1, config: planFiring(config, `${config.run}-1`, 1, from), concluded: null }),
    conclude: async ({ state: { run: name, branch, step, adapterSha256 } }) =>
      Promise.resolve({ run: name, branch, step, manifestSha256: hashOf(name), adapterSha256: adapterSha256 ?? '' }),
    promote: (input) => Promise.resolve({ reason: PromoteInput.parse(input).served === 'demo' ? null : 'it is worse' }),
  };
  return { ...run, agent, gpu, schedule };
}
