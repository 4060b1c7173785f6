import type { EvaluateInput, RunConfig, Seats } from '../contract/contract.ts';
import { hashOf } from '../text/hashes.ts';
import { nameless, namelessPlayers, type RunPosition } from './step.ts';
import { trainedRoles } from '../rules/roles.ts';
import { supervisedSteps } from '../rules/supervised.ts';

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
  const players = planEvaluationPlayers(config, position);
  return {
    ...hashed,
    ...players,
    run: config.run,
    agent: config.agent,
    agentCodeSha256: prepared.agentCodeSha256,
    policy: parent,
    inputsSha256: hashOf({ ...hashed, policy: nameless(parent), ...namelessPlayers(players), ...named(players) }),
  };
}

type Players = Pick<EvaluateInput, 'roles' | 'seats' | 'start'>;

/** A league's roles are played by the first checkpoint, as are all trained roles but one where roles compete. */
function planEvaluationPlayers(config: RunConfig, { start }: RunPosition): Players {
  const roles = trainedRoles(config);
  if (roles === undefined) return {};
  const seats: Seats = {};
  for (const [name, role] of Object.entries(config.roles ?? {})) {
    const checkpoint = role.kind === 'checkpoint' ? role.checkpoint : role.kind === 'league' ? start : undefined;
    if (checkpoint !== undefined && role.kind !== 'hosted') seats[name] = { checkpoint, policy: role.policy };
  }
  return {
    roles,
    ...(Object.keys(seats).length === 0 ? {} : { seats }),
    ...(config.competing === true && start !== undefined ? { start } : {}),
  };
}

function named({ start }: Players): object {
  return start === undefined ? {} : { start: nameless(start) };
}

/** Besides before the first step: every `evalEvery` steps, after the last supervised one, and after the last. */
export function isEvaluationDue(config: RunConfig, step: number): boolean {
  if (step === config.steps || (step > 0 && step === supervisedSteps(config))) return true;
  return config.evalEvery > 0 && step % config.evalEvery === 0;
}
