/** Which steps of a run are supervised, and what follows for its learning rate. Pure; for workflows and planners. */
import type { ExampleRendering, RunConfig, SupervisedConfig } from '../contract/contract.ts';
import { planLearningRate } from '../numbers/learning-rate.ts';

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
