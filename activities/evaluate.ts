/** `evaluate`: one attempt at each held-out scenario, by the policy of a checkpoint; where roles compete, one in each. */
import { type Evaluated, EvaluateInput } from '../core/contract/contract.ts';
import { EVAL_ATTEMPTS_AT_ONCE } from '../core/rules/run-defaults.ts';
import type { PlannedAttempt } from '../play/play-attempts.ts';
import { spreadValue } from '../play/scenarios.ts';
import { findLostClasses, summariseEval } from '../store/records/groups/eval-result.ts';
import { encodeJson } from '../store/bytes/json.ts';
import { evalJournalPrefix, evalKey, evalRolloutsKey, evalTimesKey } from '../store/layout.ts';
import { parseRollouts } from '../store/records/groups/group-files.ts';
import { usageOfAttempts } from '../store/records/groups/usage.ts';
import { encodeRollouts, type AttemptRecord, type Rollouts } from '../store/records/groups/trajectories.ts';
import { asActivity, checkInputs, type Scope } from './activity.ts';
import type { PlayDependencies } from './dependencies.ts';
import { play } from './play.ts';
import { evaluatedPlayers } from '../play/roles/role-definition.ts';
import { createScenarioReader } from './scenario-reader.ts';

export function createEvaluateActivities(dependencies: PlayDependencies) {
  const readScenario = createScenarioReader(dependencies.store);
  const { store, prices = {} } = dependencies;

  async function evaluate(input: EvaluateInput, scope: Scope): Promise<Evaluated> {
    const key = evalRolloutsKey(input);
    const bytes = (await store.read(key)) ?? (await playEval(input, scope));
    const { rollouts, sha256 } = await parseRollouts(bytes, key);
    const { inputsSha256 } = rollouts.header;
    checkInputs(`the evaluation of step ${input.step} of the run ${input.run}`, inputsSha256, input.inputsSha256);
    const lost = await readLostClasses(input, rollouts.attempts);
    const summary = summariseEval(input.step, rollouts.attempts, sha256);
    const result = lost.length === 0 ? summary : { ...summary, lostClasses: lost };
    await store.publish(evalKey(input), encodeJson({ schema: 1, inputsSha256, ...result }));
    return { ...result, usage: usageOfAttempts(rollouts.attempts, prices) };
  }

  async function playEval(input: EvaluateInput, scope: Scope): Promise<Uint8Array> {
    const planned = await planAttempts(input);
    const attempts = await play(dependencies, scope, {
      input,
      part: 'eval',
      mode: 'eval',
      planned,
      concurrency: EVAL_ATTEMPTS_AT_ONCE,
      journalPrefix: evalJournalPrefix(input),
      timesKey: evalTimesKey(input),
    });
    const encoded = await encodeRollouts(compose(input, planned, attempts));
    const { created, bytes } = await store.publish(evalRolloutsKey(input), encoded);
    const { run, branch, step } = input;
    if (!created)
      dependencies.logger.info(
        { run, branch, step },
        'another attempt at this activity finished first; this evaluation is discarded',
      );
    return bytes;
  }

  /** For an agent that names a field which its scenarios are spread by. Roles have successes of their own. */
  async function readLostClasses({ agent, roles, scenarios }: EvaluateInput, attempts: readonly AttemptRecord[]) {
    const field = dependencies.agents.get(agent)?.agent.spreadBy;
    if (field === undefined || roles !== undefined) return [];
    const played = attempts.filter(({ status, scenario }) => status === 'ok' && scenario !== undefined);
    const read = await Promise.all(played.map(({ scenario }) => readScenario(scenarios, scenario!)));
    return findLostClasses(
      played,
      field,
      read.map((scenario) => spreadValue(scenario, field)),
    );
  }

  function planAttempts(input: EvaluateInput): Promise<PlannedAttempt[]> {
    const { scenarios, firstScenario, count } = input;
    const variants = evaluatedPlayers(input);
    const reading = Array.from({ length: count * variants.length }, async (_, attempt) => {
      const scenarioIndex = firstScenario + Math.floor(attempt / variants.length);
      const players = variants[attempt % variants.length];
      const scenario = await readScenario(scenarios, scenarioIndex);
      return { attempt, scenarioIndex, scenario, ...(players && { players }) };
    });
    return Promise.all(reading);
  }

  return { evaluate: asActivity(dependencies, EvaluateInput, evaluate) };
}

function compose(
  input: EvaluateInput,
  planned: readonly PlannedAttempt[],
  attempts: readonly AttemptRecord[],
): Rollouts {
  const { inputsSha256, branch, step, policy } = input;
  const { adapterSha256 } = policy;
  return {
    header: { schema: 1, inputsSha256, branch, step, adapterSha256, attempts: attempts.length },
    attempts: attempts.map(({ attempt, ...record }, index) => {
      const plan = planned[index];
      const place = plan && { scenario: plan.scenarioIndex, scenarioId: plan.scenario.id };
      return { attempt, ...place, ...record };
    }),
  };
}
