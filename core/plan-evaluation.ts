import type { EvaluateInput, RunConfig } from './contract.ts';
import { hashOf } from './hashes.ts';
import { nameless, type RunPosition } from './plan-step.ts';
import { supervisedSteps } from './supervised.ts';

/** One attempt at each held-out scenario by the policy after the position's step. */
export function planEvaluation(config: RunConfig, position: RunPosition): EvaluateInput {
  const { prepared, parent } = position;
  const hashed = {
    branch: position.branch,
    step: position.step,
    scenarios: prepared.scenarios,
    firstScenario: prepared.trainScenarios,
    count: prepared.evalScenarios,
    seed: config.seed,
    rollout: config.rollout,
  };
  return {
    ...hashed,
    run: config.run,
    agent: config.agent,
    agentCodeSha256: prepared.agentCodeSha256,
    policy: parent,
    inputsSha256: hashOf({ ...hashed, policy: nameless(parent) }),
  };
}

/** Besides before the first step: every `evalEvery` steps, after the last supervised one, and after the last. */
export function isEvaluationDue(config: RunConfig, step: number): boolean {
  if (step === config.steps || (step > 0 && step === supervisedSteps(config))) return true;
  return config.evalEvery > 0 && step % config.evalEvery === 0;
}
