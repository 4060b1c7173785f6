/** The judge of an agent's file or `--judge`, checked before anything is started. */
import { badConfig } from '../../core/contract/failures.ts';
import type { ExternalConfig, RunConfig } from '../../core/contract/contract.ts';
import { EXTERNAL, isAwaited, REVIEW } from '../../core/rules/external-rewards.ts';
import { REWARD_GROUP } from '../../core/rules/named-rewards.ts';
import { adapterOf, parsePolicyName, policyName, type Policy } from '../../core/names/policy-name.ts';
import type { Agent } from '../../play/agent.ts';
import { requireJudgeKey, type EngineJudge } from '../../play/judge/judge-model.ts';
import type { RunOptions } from '../../core/rules/run-defaults.ts';
import { isExternal, type External } from '../../play/external.ts';
import { checkBudget, withJudge } from '../../play/judge/ruler.ts';
import { findCheckpoint, nameCheckpoint, readCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import type { Store } from '../../store/store.ts';

/** Judge options of a run's configuration; flags override them. */
export function judgeOptions({
  reward,
  rewards,
  rewardGroup,
}: Agent): Pick<RunOptions, 'external' | 'replacementRounds'> & Pick<RunConfig, 'judge'> {
  if (rewardGroup !== undefined) return { judge: REWARD_GROUP };
  if (isExternal(reward)) {
    const judge = reward.review === undefined ? EXTERNAL : REVIEW;
    return { judge, external: toConfig(reward, rewards), replacementRounds: 0 };
  }
  return { judge: reward?.judge.name ?? null };
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

/** Requires the judge's key, its committed checkpoint, and prices if the budget is limited. */
export async function checkJudge(
  { reward, rewardGroup }: Agent,
  config: RunConfig,
  { store, env, recorded }: { store: Store; env: NodeJS.ProcessEnv; recorded: string | null },
): Promise<void> {
  const { agent, judge: name } = config;
  if (name === null || (name === REWARD_GROUP && rewardGroup !== undefined)) return;
  if (isAwaited(name) && isExternal(reward)) return;
  if (reward === undefined || isExternal(reward)) {
    const ownRewards = describeRewards(reward, rewardGroup);
    throw badConfig(`--judge ${name} has no effect: the agent ${agent} ${ownRewards}; add reward: ruler({ … }) to it`);
  }
  const ruler = withJudge(reward, name);
  const { judge } = ruler;
  requireJudgeKey(judge, env);
  if (isOnlyCost(config)) checkBudget(ruler);
  if (judge.kind === 'engine') await requireCommitted(store, judge, name === recorded);
}

/** Whether a budget has nothing but the judge to count. */
function isOnlyCost({ maxCostUsd, gpuUsdPerHour, roles = {} }: RunConfig): boolean {
  const hasHosted = Object.values(roles).some(({ kind }) => kind === 'hosted');
  return maxCostUsd !== null && gpuUsdPerHour === null && !hasHosted;
}

async function requireCommitted(store: Store, { name, model }: EngineJudge, isRecorded: boolean): Promise<void> {
  const policy = parsePolicyName(model);
  if (policy === null) return;
  const checkpoint = await readCheckpoint(store, policy);
  if (checkpoint === null || adapterOf(checkpoint, policy.policy) === undefined)
    throw badConfig(
      `the judge ${name} must be a committed checkpoint in ${store.uri}; see temper checkpoints, or choose another judge`,
    );
  if (!isRecorded) await refuseLeft(store, policy);
}

/** Engines know a step of the first branch by the name that means the run's current line elsewhere. */
async function refuseLeft(store: Store, { run, branch, step }: Policy): Promise<void> {
  const place = { run, branch, step };
  if (branch > 0 || (await nameCheckpoint(store, place)) === policyName(place)) return;
  const current = policyName(await findCheckpoint(store, { run, branch: null, step }));
  throw badConfig(
    `the judge ${policyName(place)} is on a branch that a rollback of ${run} has left; pass engine/${current}, or fork the step to judge with it`,
  );
}

function describeRewards(reward: Agent['reward'], rewardGroup: Agent['rewardGroup']): string {
  if (reward !== undefined) return 'is rewarded from outside';
  return rewardGroup === undefined ? 'returns its own rewards' : 'has rewardGroup';
}
