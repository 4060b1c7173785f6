/** Which steps of a run are supervised, and what follows for its learning rate. Pure; for workflows and planners. */
import type { ExampleRendering, RunConfig, SupervisedConfig } from './contract.ts';
import { planLearningRate } from './plan-learning-rate.ts';

/** Instead of an agent's name; `workers/supervised-agent.ts` is what a worker is started with. */
export const SUPERVISED_AGENT = 'temper-sft';

/** Before the fields of a run's supervised steps, in messages and flags. */
export const SUPERVISED = 'supervised.';

/** How many of the run's first steps are supervised. */
export function supervisedSteps({ supervised, steps }: Pick<RunConfig, 'supervised' | 'steps'>): number {
  return supervised === undefined ? 0 : (supervised.steps ?? steps);
}

export function isSupervisedStep(config: Pick<RunConfig, 'supervised' | 'steps'>, step: number): boolean {
  return step <= supervisedSteps(config);
}

/** A run that plays no agent. */
export function isSupervisedOnly({ supervised }: { supervised?: RunConfig['supervised'] }): boolean {
  return supervised !== undefined && supervised.steps === undefined;
}

type Rates = Parameters<typeof planLearningRate>[0] & Pick<RunConfig, 'supervised'>;

/** Share of the learning rate left at the last step of a warm start, where it falls. */
const FINAL_SHARE = 0.1;

/** After a warm start the run's own schedule begins: it counts the steps that are left. */
export function learningRateOf(config: Rates, step: number): number {
  const first = supervisedSteps(config);
  const { supervised, steps } = config;
  if (supervised?.steps === undefined) return planLearningRate(config, step);
  if (step > first) return planLearningRate({ ...config, steps: steps - first }, step - first);
  const { learningRate = config.learningRate, learningRateSchedule = 'constant' } = supervised;
  const finalLearningRateShare = learningRateSchedule === 'constant' ? 1 : FINAL_SHARE;
  return planLearningRate(
    {
      learningRate,
      learningRateSchedule,
      finalLearningRateShare,
      learningRateRestarts: 0,
      warmupSteps: 0,
      steps: first,
    },
    step,
  );
}

type Rendered = Pick<SupervisedConfig, 'dataset' | 'turns' | 'overlong' | 'maxExampleTokens'>;

/** A run has one rendering of its examples: its own template writes them, too. */
export function planRendering({ rollout }: Pick<RunConfig, 'rollout'>, supervised: Rendered): ExampleRendering {
  const { dataset, turns, overlong, maxExampleTokens } = supervised;
  const { chatTemplateKwargs, chatTemplateSha256 } = rollout;
  return {
    dataset,
    turns,
    overlong,
    ...(maxExampleTokens === undefined ? {} : { maxExampleTokens }),
    ...(chatTemplateKwargs === undefined ? {} : { chatTemplateKwargs }),
    ...(chatTemplateSha256 === undefined ? {} : { chatTemplateSha256 }),
  };
}

/** Describes a contradiction; null if there is none. */
export function findSupervisedProblem(config: RunConfig): string | null {
  const { supervised, steps, warmupSteps } = config;
  if (supervised === undefined) return null;
  const { examples, heldOut } = supervised;
  if (heldOut >= examples)
    return `supervised.heldOut must be fewer than the examples, got ${heldOut} of ${examples}; lower it`;
  if (supervised.steps === undefined) return findRatesProblem(supervised);
  if (supervised.steps >= steps)
    return `supervised.steps must be fewer than steps (the run plays its agent after them), got ${supervised.steps} of ${steps}; raise steps, or train on the examples alone with temper sft`;
  if (warmupSteps > 0 && warmupSteps >= steps - supervised.steps)
    return `warmupSteps must be fewer than the ${steps - supervised.steps} steps after the supervised ones, got ${warmupSteps}; lower warmupSteps`;
  return null;
}

/** Without another stage the run's own options say it. */
function findRatesProblem({ learningRate, learningRateSchedule }: NonNullable<RunConfig['supervised']>): string | null {
  if (learningRate === undefined && learningRateSchedule === undefined) return null;
  return 'supervised.learningRate and supervised.learningRateSchedule have no effect where all steps are supervised; set learningRate and learningRateSchedule';
}
