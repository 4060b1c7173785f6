/** Results of the fake activities: numbers that depend on inputs only. */
import type {
  Checkpoint,
  EvaluateInput,
  EvalResult,
  GroupResult,
  Prepared,
  RolloutInput,
  TrainResult,
} from '../../core/contract/contract.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { createRandom } from '../../core/numbers/seeds.ts';

export function fakePrepared(trainScenarios: number): Prepared {
  const sha256 = hashOf(['scenarios', trainScenarios]);
  return {
    scenarios: { key: `blobs/${sha256}`, sha256, bytes: 100 },
    trainScenarios,
    evalScenarios: 3,
    heldOut: false,
    agentCodeSha256: hashOf('agent'),
  };
}

export function playGroup(input: RolloutInput, use: GroupResult['use']): GroupResult {
  const random = createRandom(Number.parseInt(input.inputsSha256.slice(0, 12), 16));
  const rewards = Array.from({ length: input.attempts }, () => (use === 'no-variance' ? 1 : Math.round(random())));
  return {
    step: input.step,
    group: input.group,
    scenario: input.scenario,
    rolloutsSha256: hashOf([input.inputsSha256, 'rollouts']),
    judgedSha256: use === 'unjudged' ? null : hashOf([input.inputsSha256, 'judged']),
    attempts: input.attempts,
    failed: use === 'too-few-attempts' ? input.attempts : 0,
    truncated: 0,
    calls: input.attempts,
    sampledTokens: 10 * input.attempts,
    rewards,
    metrics: { winRate: rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length },
    use,
  };
}

export function evaluatePolicy(input: EvaluateInput): EvalResult {
  const { count, step } = input;
  const rolloutsSha256 = hashOf([input.inputsSha256, 'eval']);
  return { step, attempts: count, failed: 0, reward: step / 10, metrics: { winRate: step / 10 }, rolloutsSha256 };
}

export function commit(
  { run, branch }: { run: string; branch: number },
  step: number,
  inputsSha256: string,
  learningRate: number,
): TrainResult {
  const manifestSha256 = hashOf([inputsSha256, 'manifest']);
  const checkpoint: Checkpoint = {
    run,
    branch,
    step,
    manifestSha256,
    adapterSha256: hashOf([inputsSha256, 'adapter']),
  };
  return { checkpoint, metrics: { loss: learningRate / 2, gradNorm: null }, seconds: { train: 0.01 }, found: false };
}
