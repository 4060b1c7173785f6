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
  type Checkpoint,
  type EvalResult,
  type GroupResult,
  type JudgeSpending,
  type Located,
  type OpenGroup,
  type RunState,
  type StepSummary,
  type TrainResult,
} from '../../core/contract.ts';
import { hashOf } from '../../core/hashes.ts';
import { NOTHING_SPENT as NOTHING } from '../../core/judge-spending.ts';
import { planFiring } from '../../core/plan-firing.ts';
import { branchOfStep, planLineage } from '../../core/lineage.ts';
import { groupName } from '../../core/plan-given.ts';
import { chooseFirst, hashJudging } from '../../core/plan-window.ts';
import type { AgentActivities, GpuActivities, ScheduleActivities } from '../../workflows/activities.ts';
import { gatherGroups } from './fake-gather.ts';
import { lookAtGiven } from './fake-given.ts';
import { commit, evaluatePolicy, fakePrepared, playGroup } from './fake-results.ts';

export interface FakeOptions {
  trainScenarios?: number;
  /** Staleness of the run in its store. */
  maxStaleness?: number;
  /** Whether the run in its store has open groups. */
  hasWindow?: boolean;
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
  /** Groups that left a step's window, by branch and step. */
  const chosen = new Map<string, string[]>();
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
        chosen.set(`${input.branch}/${input.step}`, groups.map(groupName));
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
    },
    amend: (input) => steering.amend(input),
    locate: (input) => steering.locate(input),
  };
  const place = ({ run: name }: { run: string }, branch: number, step: number): Located => {
    const lineage = planLineage(branches, branch);
    const steps = Array.from({ length: step + 1 }, (_, index) => index);
    const found = <T>(kind: string, at: number): T[] => {
      const result = published.get(`${name}/${kind}/${branchOfStep(lineage, at)}/${at}`)?.result as T | undefined;
      return result === undefined ? [] : [result];
    };
    const after = (last: number): Checkpoint => {
      const { checkpoint } = steps
        .slice(0, last + 1)
        .flatMap((at) => found<TrainResult>('step', at))
        .at(-1)!;
      return { ...checkpoint, run: name };
    };
    const checkpoint = after(step);
    const first = Math.max(0, ...lineage.map(({ fromStep }) => fromStep));
    const { maxStaleness = 0 } = options;
    const policies = Array.from({ length: maxStaleness + 1 }, (_, index) =>
      after(Math.max(first, step - maxStaleness + index)),
    );
    const { hasWindow = false, missing: countMissing = () => 0 } = options;
    const taken = new Set(steps.flatMap((at) => chosen.get(`${branchOfStep(lineage, at)}/${at}`) ?? []));
    const open = run.rollouts
      .filter((each) => each.step <= step && branchOfStep(lineage, each.step) === each.branch)
      .filter((each) => !taken.has(groupName(each)))
      .map((each): OpenGroup => {
        const use = countMissing(each) > 0 ? 'unjudged' : (options.use?.(each) ?? 'trained');
        const staleness = steps.filter((at) => at >= each.step && found('step', at).length > 0).length;
        const { policy, inputsSha256 } = each;
        return { branch: each.branch, policy, staleness, inputsSha256, result: playGroup(each, use) };
      });
    return {
      ...(maxStaleness === 0 ? {} : { policies }),
      open: hasWindow ? open : [],
      branch,
      lineage,
      step,
      checkpoint,
      dealt: run.rollouts.filter((input) => input.step <= step && branchOfStep(lineage, input.step) === input.branch)
        .length,
      emptySteps: step - checkpoint.step,
      evals: steps.flatMap((at) => found<EvalResult>('eval', at)),
      changes: run.amendments.flatMap(({ changes }) => changes),
      amendments: run.amendments.length,
      judging: null,
    };
  };
  /** Branches as the store keeps them: one for each request, and its position from what was published. */
  const branches: Branch[] = [];
  const requests: string[] = [];
  const steering: Pick<AgentActivities, 'amend' | 'locate'> = {
    async amend(input) {
      AmendInput.parse(input);
      await options.before?.('amend', input);
      run.amendments[input.number - 1] ??= input;
    },
    async locate(input) {
      const { rollback } = LocateInput.parse(input);
      await options.before?.('locate', input);
      const newest = branches.at(-1)?.branch ?? 0;
      if (rollback === null) {
        const trained = run.trainings.filter(({ branch }) => branch === newest).map(({ step }) => step);
        return place(input, newest, Math.max(branches.at(-1)?.fromStep ?? 0, ...trained));
      }
      const made = branches[requests.indexOf(rollback.requestId)];
      if (made !== undefined) return place(input, made.branch, made.fromStep);
      const fromBranch = branchOfStep(planLineage(branches, newest), rollback.step);
      branches.push({ branch: newest + 1, fromBranch, fromStep: rollback.step });
      requests.push(rollback.requestId);
      return place(input, newest + 1, rollback.step);
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
