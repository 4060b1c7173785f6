/** `rollout`: the attempts of one group, played and published; judged, too, where the agent's own reward is the verdict. */
import { type GroupResult, RolloutInput } from '../core/contract/contract.ts';
import { ATTEMPTS_AT_ONCE } from '../core/rules/run-defaults.ts';
import type { Scenario } from '../play/agent.ts';
import type { PlannedAttempt } from '../play/play-attempts.ts';
import { judgeByAgent, summariseGroup, summariseUnjudged } from '../store/records/groups/group-result.ts';
import { parseRollouts, publishVerdict, type StoredRollouts } from '../store/records/groups/group-files.ts';
import { groupJournalPrefix, groupTimesKey, rolloutsKey } from '../store/layout.ts';
import { hashBytes } from '../store/bytes/sha256.ts';
import { encodeRollouts, type AttemptRecord, type Rollouts } from '../store/records/groups/trajectories.ts';
import { asActivity, checkInputs, type Scope } from './activity.ts';
import type { PlayDependencies } from './dependencies.ts';
import { play } from './play.ts';
import { playersOf } from '../play/roles/role-definition.ts';
import { createScenarioReader } from './scenario-reader.ts';

export function createRolloutActivities(dependencies: PlayDependencies) {
  const readScenario = createScenarioReader(dependencies.store);
  const { store } = dependencies;

  return { rollout: asActivity(dependencies, RolloutInput, rollout) };

  async function rollout(input: RolloutInput, scope: Scope): Promise<GroupResult> {
    const key = rolloutsKey(input);
    const recorded = await store.read(key);
    const { rollouts, sha256 } = recorded === null ? await playGroup(input, scope) : await parseRollouts(recorded, key);
    const what = `group ${input.group} of step ${input.step} of the run ${input.run}`;
    checkInputs(what, rollouts.header.inputsSha256, input.inputsSha256);
    if (input.judge !== null) return summariseUnjudged(input, rollouts, sha256);
    const { judged, sha256: judgedSha256 } = await publishVerdict(store, input, judgeByAgent(rollouts, sha256, input));
    checkInputs(`the verdict on ${what}`, judged.inputsSha256, input.inputsSha256);
    return summariseGroup(input, rollouts, judged, judgedSha256);
  }

  async function playGroup(input: RolloutInput, scope: Scope): Promise<StoredRollouts> {
    const scenario = await readScenario(input.scenarios, input.scenario);
    const attempts = await play(dependencies, scope, {
      input,
      part: String(input.group),
      mode: 'train',
      planned: planAttempts(input, scenario),
      concurrency: ATTEMPTS_AT_ONCE,
      journalPrefix: groupJournalPrefix(input),
      timesKey: groupTimesKey(input),
    });
    return publishRollouts(input, scenario.id, attempts);
  }

  /** The second writer takes the first one's object and discards its own attempts. */
  async function publishRollouts(
    input: RolloutInput,
    scenarioId: string,
    attempts: AttemptRecord[],
  ): Promise<StoredRollouts> {
    const { inputsSha256, branch, step, group, scenario, policy } = input;
    const { adapterSha256 } = policy;
    const placed = { branch, step, group, scenarioId, scenario, adapterSha256, attempts: attempts.length };
    const rollouts: Rollouts = { header: { schema: 1, inputsSha256, ...placed }, attempts };
    const { created, bytes } = await store.publish(rolloutsKey(input), await encodeRollouts(rollouts));
    if (created) return { rollouts, sha256: hashBytes(bytes) };
    dependencies.logger.info(
      { run: input.run, branch, step, group },
      'another attempt at this activity finished first; the attempts of this one are discarded',
    );
    return parseRollouts(bytes, rolloutsKey(input));
  }
}

function planAttempts(input: RolloutInput, scenario: Scenario): PlannedAttempt[] {
  const { attempts, scenario: scenarioIndex } = input;
  const players = playersOf(input);
  const shared = { scenarioIndex, scenario, ...(players && { players }) };
  return Array.from({ length: attempts }, (_, attempt) => ({ attempt, ...shared }));
}
