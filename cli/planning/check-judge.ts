/** The judge of an agent's file or `--judge`, checked before anything is started. */
import type { ExternalConfig, RunConfig } from '../../core/contract.ts';
import { EXTERNAL, isAwaited, REVIEW } from '../../core/external-rewards.ts';
import { REWARD_GROUP } from '../../core/named-rewards.ts';
import { adapterOf, parsePolicyName, policyName, type Policy } from '../../core/policy-name.ts';
import type { Agent } from '../../play/agent.ts';
import { requireJudgeKey } from '../../play/judge/judge-model.ts';
import type { RunOptions } from '../../core/run-defaults.ts';
import { isExternal, type External } from '../../play/external.ts';
import { checkBudget, withJudge } from '../../play/judge/ruler.ts';
import { findCheckpoint, nameCheckpoint, readCheckpoint } from '../../store/records/find-checkpoint.ts';
import type { Store } from '../../store/store.ts';
import { UsageError } from '../command-line/errors.ts';

/** Judge options of a run's configuration; flags override them. */
export function judgeOptions({
  reward,
  rewards,
  rewardGroup,
}: Agent): Pick<RunOptions, 'external'> & Pick<RunConfig, 'judge' | 'maxJudgeUsd'> {
  if (rewardGroup !== undefined) return { judge: REWARD_GROUP, maxJudgeUsd: null };
  if (isExternal(reward)) {
    const judge = reward.review === undefined ? EXTERNAL : REVIEW;
    return { judge, maxJudgeUsd: null, external: toConfig(reward, rewards) };
  }
  if (reward === undefined) return { judge: null, maxJudgeUsd: null };
  return { judge: reward.judge.name, maxJudgeUsd: reward.maxJudgeUsd };
}

/** Absent members are the defaults. */
function toConfig(
  { name, timeoutMs, onTimeout, minimum, review }: External,
  weights: Agent['rewards'],
): ExternalConfig {
  return {
    ...(name !== null && { name, weight: weights?.[name] ?? 1 }),
    ...(timeoutMs !== null && { timeoutMs }),
    ...(onTimeout !== 'drop' && { onTimeout }),
    ...(minimum !== null && { minimum }),
    ...(review !== undefined && { review }),
  };
}

async function findJudge(store: Store, policy: Policy): Promise<string | undefined> {
  const checkpoint = await readCheckpoint(store, policy);
  return checkpoint === null ? undefined : adapterOf(checkpoint, policy.policy);
}

/** Requires the judge's key, its committed checkpoint, and prices if the budget is limited. */
export async function checkJudge(
  { reward, rewardGroup }: Agent,
  { agent, judge: name, maxJudgeUsd }: RunConfig,
  { store, env, recorded }: { store: Store; env: NodeJS.ProcessEnv; recorded: string | null },
): Promise<void> {
  if (name === null || (name === REWARD_GROUP && rewardGroup !== undefined)) return;
  if (isAwaited(name) && isExternal(reward)) return;
  if (reward === undefined || isExternal(reward)) {
    const ownRewards = describeRewards(reward, rewardGroup);
    throw new UsageError(
      `--judge ${name} has no effect: the agent ${agent} ${ownRewards}; add reward: ruler({ … }) to it`,
    );
  }
  const ruler = withJudge(reward, name);
  const { judge } = ruler;
  requireJudgeKey(judge, env);
  if (maxJudgeUsd !== null) checkBudget(ruler);
  const policy = judge.kind === 'engine' ? parsePolicyName(judge.model) : null;
  if (policy === null) return;
  if ((await findJudge(store, policy)) !== undefined) {
    if (name !== recorded) await refuseLeft(store, policy);
    return;
  }
  throw new UsageError(
    `the judge ${judge.name} must be a committed checkpoint in ${store.uri}; see temper checkpoints, or choose another judge`,
  );
}

/** Engines know a step of the first branch by the name that means the run's current line elsewhere. */
async function refuseLeft(store: Store, { run, branch, step }: Policy): Promise<void> {
  const place = { run, branch, step };
  if (branch > 0 || (await nameCheckpoint(store, place)) === policyName(place)) return;
  const current = policyName(await findCheckpoint(store, { run, branch: null, step }));
  throw new UsageError(
    `the judge ${policyName(place)} is on a branch that a rollback of ${run} has left; pass engine/${current}, or fork the step to judge with it`,
  );
}

function describeRewards(reward: Agent['reward'], rewardGroup: Agent['rewardGroup']): string {
  if (reward !== undefined) return 'is rewarded from outside';
  return rewardGroup === undefined ? 'returns its own rewards' : 'has rewardGroup';
}
