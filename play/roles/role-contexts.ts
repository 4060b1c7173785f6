/** `context.roles`: for each role of an agent a client of its own, answered by the role's player. */
import { badConfig } from '../../core/contract/failures.ts';
import type { HostedCalls } from '../hosted/hosted-calls.ts';
import type { ConnectHosted } from '../connections/connect-hosted.ts';
import { createHosted } from '../hosted/hosted.ts';
import type { Answerer } from '../dialects/answer-request.ts';
import type { ExpectedPolicy } from '../recorder/answer.ts';
import type { CallSeat, Recorder } from '../recorder/recorder.ts';
import { createModelClient, type ModelClient } from '../transports/model-client.ts';
import type { RolePlayers, RoleDefinitions } from './role-definition.ts';

interface RoleParts {
  readonly recorder: Recorder;
  readonly calls: HostedCalls;
  readonly connect?: ConnectHosted | undefined;
  readonly baseURL: string;
}

export function createRoleContexts(
  roles: RoleDefinitions,
  { seated }: RolePlayers,
  parts: RoleParts,
): Readonly<Record<string, ModelClient>> {
  const contexts = Object.entries(roles).map(([name, role]): [string, ModelClient] => {
    const player = Object.hasOwn(seated, name) ? seated[name]! : null;
    if (player !== null) return [name, seatedClient(name, player, parts)];
    if (role.kind === 'frozen') return [name, createHosted({ ...parts, role: name })(role.player)];
    throw badConfig(`the role ${name} has no player; start the run again`);
  });
  return Object.fromEntries(contexts);
}

function seatedClient(role: string, policy: ExpectedPolicy, { recorder, baseURL }: RoleParts): ModelClient {
  return createModelClient(seatedAnswerer(recorder, { role, policy }), {
    model: policy.model,
    baseURL,
    owner: `roles.${role}`,
  });
}

/** Answers the calls of one role. */
export function seatedAnswerer(recorder: Recorder, seat: CallSeat): Answerer {
  return {
    call: (asked, options) => recorder.call(asked, { ...options, seat }),
    refuse: (error) => recorder.refuse(error),
  };
}
