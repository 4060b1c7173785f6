/** Plays attempts of a worker's agent for rollouts and evaluations, with a journal, and shows them in Temporal's UI. */
import { hostname } from 'node:os';

import type { EvaluateInput, RolloutInput } from '../core/contract/contract.ts';
import { policyName } from '../core/names/policy-name.ts';
import { Attempts, type AttemptTimes, type PlannedAttempt } from '../play/play-attempts.ts';
import { SYSTEM_CLOCK } from '../play/connections/clock.ts';
import type { RequestMode } from '../play/recorder/request.ts';
import { encodeJson } from '../store/bytes/json.ts';
import type { AttemptRecord } from '../store/records/groups/trajectories.ts';
import type { Scope } from './activity.ts';
import { requireAgent, type PlayDependencies } from './dependencies.ts';

export interface PlayPlan {
  input: RolloutInput | EvaluateInput;
  /** The group's number, or `eval`. */
  part: string;
  mode: RequestMode;
  planned: readonly PlannedAttempt[];
  concurrency: number;
  journalPrefix: string;
  timesKey: string;
}

export async function play(dependencies: PlayDependencies, scope: Scope, plan: PlayPlan): Promise<AttemptRecord[]> {
  const { input, part, mode, concurrency } = plan;
  const { run, branch, step, seed, policy } = input;
  const { agent, codeSha256, resources = null } = requireAgent(dependencies.agents, input.agent);
  const fields = { run, branch, step, part, activityAttempt: scope.attempt };
  if (codeSha256 !== input.agentCodeSha256) {
    dependencies.logger.warn(
      { ...fields, agent: input.agent },
      'the agent has changed since the run started; the run continues with the new agent',
    );
  }
  const startedAt = Math.round(SYSTEM_CLOCK.now());
  const playing = new Attempts({
    agent,
    planned: plan.planned,
    concurrency,
    engine: dependencies.engine,
    segments: await dependencies.store.openJournal(plan.journalPrefix),
    policy: { model: policyName(policy), adapterSha256: policy.adapterSha256 },
    mode,
    rollout: input.rollout,
    place: { seed, branch, step },
    attemptKey: (attempt) => `${run}.${branch}.${step}.${part}.${attempt}`,
    signal: scope.signal,
    isFresh: scope.isFresh,
    resources,
    leasePlace: { run, branch, step, part },
    run: {
      address: { storeId: await dependencies.store.id(), run, play: `${branch}.${step}.${part}` },
      isPlayedAgain: () => !scope.isCancelled(),
    },
  });
  scope.showDetail(() => ({ step, part, ...playing.progress() }));
  const attempts = await playing.play();
  const endedAt = Math.round(SYSTEM_CLOCK.now());
  const failed = attempts.filter(({ status }) => status === 'failed').length;
  dependencies.logger.info({ ...fields, attempts: attempts.length, failed, ms: endedAt - startedAt }, 'played');
  const played = { callOrders: playing.callOrders(), attemptTimes: playing.times() };
  const facts = { startedAt, endedAt, agentCodeSha256: codeSha256, ...played };
  await writeTimes(dependencies, plan.timesKey, scope, facts);
  return attempts;
}

interface PlayedFacts {
  startedAt: number;
  endedAt: number;
  agentCodeSha256: string;
  callOrders: Record<number, number[]>;
  attemptTimes: Record<number, AttemptTimes>;
}

/** Times beside a write-once object, outside every hash: who made it, when, from which code, in which order of calls. */
async function writeTimes({ store }: PlayDependencies, key: string, scope: Scope, facts: PlayedFacts): Promise<void> {
  if (!scope.isFresh()) return;
  const seconds = (facts.endedAt - facts.startedAt) / 1000;
  const times = { seconds, ...facts, host: hostname(), pid: process.pid, activityAttempt: scope.attempt };
  await store.replace(key, encodeJson(times));
}
