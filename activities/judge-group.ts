/**
 * `judgeGroup`: the attempts of one group that was played, compared by the judge that the agent names, or by a function
 * of its own.
 */
import { performance } from 'node:perf_hooks';

import { JudgeGroupInput, type JudgeGroupResult, type RolloutInput } from '../core/contract/contract.ts';
import { badConfig } from '../core/contract/failures.ts';
import { NOTHING_SPENT } from '../core/rules/judge-spending.ts';
import { REWARD_GROUP } from '../core/rules/named-rewards.ts';
import { adapterOf, parsePolicyName } from '../core/names/policy-name.ts';
import { overlongCosts } from '../core/plan/shaped-rewards.ts';
import { OutageClock } from '../play/connections/clock.ts';
import { conversationOf } from '../store/records/judging/conversation.ts';
import { openJudge, type OpenJudge } from '../play/judge/ask-judge.ts';
import { judgeConversations, type Judgement } from '../play/judge/judge-conversations.ts';
import { isJudgeName, type EngineJudge } from '../play/judge/judge-model.ts';
import { isRuler, withJudge, withPrices, type Ruler } from '../play/judge/ruler.ts';
import { earnedByTurns, judgeTurns, summariseGroup } from '../store/records/groups/group-result.ts';
import { readCheckpoint } from '../store/records/runs/find-checkpoint.ts';
import {
  publishVerdict,
  readRollouts,
  readVerdict,
  requireFile,
  type StoredRollouts,
} from '../store/records/groups/group-files.ts';
import { rolloutsKey } from '../store/layout.ts';
import type { Store } from '../store/store.ts';
import type { AttemptRecord } from '../store/records/groups/trajectories.ts';
import { readGroupSpending, storedAnswers, storedVerdicts } from '../store/records/judging/verdicts.ts';
import { asActivity, checkInputs, type Scope } from './activity.ts';
import { requireAgent, type PlayDependencies } from './dependencies.ts';
import { createGroupReward, type GroupVerdict, type JudgePlayed } from './reward-group.ts';

export function createJudgeGroupActivities(dependencies: PlayDependencies) {
  const { store } = dependencies;
  const compare = createComparison(dependencies);
  const reward = createGroupReward(dependencies);

  return { judgeGroup: asActivity(dependencies, JudgeGroupInput, judgeGroup) };

  async function judgeGroup({ group: input }: JudgeGroupInput, scope: Scope): Promise<JudgeGroupResult> {
    const startedAt = performance.now();
    const key = rolloutsKey(input);
    const played = requireFile(await readRollouts(store, key), key);
    const { judged, sha256 } = (await readVerdict(store, input)) ?? (await judgePlayed(input, played, scope));
    checkInputs(
      `the verdict on group ${input.group} of step ${input.step} of the run ${input.run}`,
      judged.inputsSha256,
      input.inputsSha256,
    );
    const group = summariseGroup(input, played.rollouts, judged, sha256);
    // From the store, not from this try of the activity: what an earlier one paid was paid.
    const isAsked = input.judge !== REWARD_GROUP && judged.verdict != null;
    const spent = isAsked ? await readGroupSpending(store, input) : NOTHING_SPENT;
    return { group, spent, seconds: (performance.now() - startedAt) / 1000 };
  }

  async function judgePlayed(input: RolloutInput, { rollouts, sha256 }: StoredRollouts, scope: Scope) {
    const { attempts, header } = rollouts;
    const verdict = await (input.judge === REWARD_GROUP ? reward : compare)(input, attempts, scope);
    return publishVerdict(store, input, {
      schema: 1,
      inputsSha256: header.inputsSha256,
      rolloutsSha256: sha256,
      ...verdict,
      ...overlongCosts(input, attempts),
    });
  }
}

function createComparison(dependencies: PlayDependencies): JudgePlayed {
  return async (input, attempts, scope) => {
    const ruler = withPrices(requireRuler(dependencies, input), dependencies.prices ?? {});
    const data = attempts.filter(({ status }) => status === 'ok');
    const judgement = data.length === 0 ? null : await ask(dependencies, input, ruler, data, scope);
    return toVerdict(ruler, attempts, judgement);
  };
}

async function ask(
  dependencies: PlayDependencies,
  input: RolloutInput,
  ruler: Ruler,
  data: readonly AttemptRecord[],
  scope: Scope,
): Promise<Judgement> {
  const { store, logger } = dependencies;
  const { run, branch, step, group, rollout } = input;
  const outage = new OutageClock();
  const { name } = ruler.judge;
  scope.showDetail(() => ({ step, part: String(group), judge: name, waiting: describeWait(outage) }));
  const { callTimeoutMs, callRetryBudgetMs } = rollout;
  const { signal, checkFresh } = scope;
  const judgement = await judgeConversations(data.map(conversationOf), {
    ...(await openRunJudge(dependencies, ruler)),
    verdicts: storedVerdicts(store),
    answers: storedAnswers(store, input),
    patience: { callTimeoutMs, callRetryBudgetMs, signal, checkFresh, outage },
  });
  logger.info({ run, branch, step, group, judge: name, verdict: judgement.key, ...judgement.spent }, 'judged');
  return judgement;
}

function requireRuler(
  { agents, logger }: PlayDependencies,
  { run, agent: name, judge: expected }: RolloutInput,
): Ruler {
  const ruler = requireAgent(agents, name).agent.reward;
  if (!isRuler(ruler)) {
    const rule = `the run ${run} is judged by ${expected}, but its agent ${name} no longer has reward: ruler({ … })`;
    throw badConfig(`${rule}; restore it, or start another run`);
  }
  // Its own, by flag or from the file as it was; an endpoint that the file names no more cannot be found again.
  if (expected !== null && isJudgeName(expected)) return withJudge(ruler, expected);
  if (ruler.judge.name !== expected)
    logger.warn(
      { run, agent: name, judge: ruler.judge.name, expected },
      'the judge has changed since the run started; the run continues with the new judge',
    );
  return ruler;
}

/** The judge's score of each attempt, and the reward that follows from it by the ruler's weights. */
function toVerdict(ruler: Ruler, attempts: readonly AttemptRecord[], judgement: Judgement | null): GroupVerdict {
  const scores = new Map(judgement?.scores.map((score) => [score.id, score]));
  const judged = attempts.map((record) => ({ record, score: scores.get(String(record.attempt)) ?? null }));
  const { weights } = ruler;
  return {
    judge: ruler.judge.name,
    rewards: judged.map(({ record, score }) =>
      score === null ? null : weights.ruler * score.score + weights.agent * (record.reward ?? 0),
    ),
    // Turn rewards are parts of the agent's own reward and have its weight.
    ...judgeTurns(earnedByTurns(attempts), weights.agent),
    explanations: judged.map(({ score }) => score?.explanation ?? null),
    scores: judged.map(({ score }) => score?.score ?? null),
    verdict: judgement?.key ?? null,
    metrics: {},
  };
}

function describeWait({ reason, waitingSince, nextTryAt }: OutageClock): object | null {
  if (reason === null) return null;
  const next = nextTryAt > Date.now() ? new Date(nextTryAt).toISOString() : null;
  return { attempts: 1, reason, since: new Date(waitingSince ?? Date.now()).toISOString(), nextTryAt: next };
}

/** Opens the judge that a ruler names: on the run's own engine, it may be a checkpoint of the run's store. */
async function openRunJudge({ store, engine, env = process.env }: PlayDependencies, ruler: Ruler): Promise<OpenJudge> {
  const { judge } = ruler;
  if (judge.kind === 'hosted') return openJudge(ruler, null, env);
  return openJudge(ruler, { connection: engine, adapterSha256: await findAdapter(store, judge) }, env);
}

/** Null for a base model. */
async function findAdapter(store: Store, { name, model }: EngineJudge): Promise<string | null> {
  const policy = parsePolicyName(model);
  if (policy === null) return null;
  const checkpoint = await readCheckpoint(store, policy);
  const sha256 = checkpoint === null ? undefined : adapterOf(checkpoint, policy.policy);
  if (sha256 !== undefined) return sha256;
  const rule = `the judge ${name} must be a committed checkpoint in this store`;
  throw badConfig(`${rule}; name another one, or a base model`);
}
