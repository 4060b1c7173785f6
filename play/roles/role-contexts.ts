/** `context.roles`: for each role of an agent a client of its own, answered by the role's player. */
import { badConfig } from '../../core/failures.ts';
import type { HostedCalls } from '../hosted/hosted-calls.ts';
import type { ConnectHosted } from '../hosted/connect-hosted.ts';
import { createHosted } from '../hosted/hosted.ts';
import type { RoleContext } from './role-context.ts';
import type { Answerer } from '../dialects/answer-request.ts';
import type { CallSeat, Recorder } from '../recorder/recorder.ts';
import { createFetch } from '../transports/fetch.ts';
import { createOpenAIClient } from '../transports/openai-client.ts';
import type { RolePlayers, RoleDefinitions } from './role-definition.ts';

interface RoleParts {
  readonly recorder: Recorder;
  readonly hosted: HostedCalls;
  readonly connect?: ConnectHosted | undefined;
  readonly address: { baseURL: string; apiKey: string };
}

export function createRoleContexts(
  roles: RoleDefinitions,
  { seated }: RolePlayers,
  parts: RoleParts,
): Readonly<Record<string, RoleContext>> {
  const contexts = Object.entries(roles).map(([name, role]): [string, RoleContext] => {
    const player = Object.hasOwn(seated, name) ? seated[name]! : null;
    if (player !== null) return [name, seatedContext(name, player, parts)];
    if (role.kind === 'frozen') return [name, hostedContext(name, role.player, parts)];
    throw badConfig(`the role ${name} has no player; start the run again`);
  });
  return Object.fromEntries(contexts);
}

function seatedContext(
  role: string,
  policy: { model: string; adapterSha256: string | null },
  parts: RoleParts,
): RoleContext {
  const { recorder, address } = parts;
  const fetch = createFetch(seatedAnswerer(recorder, { role, policy }), address.baseURL, `roles.${role}`);
  return { openai: createOpenAIClient(address, fetch), model: policy.model, fetch, ...address };
}

/** Answers the calls of one role. */
export function seatedAnswerer(recorder: Recorder, seat: CallSeat): Answerer {
  return {
    call: (asked, options) => recorder.call(asked, { ...options, seat }),
    refuse: (error) => recorder.refuse(error),
  };
}

function hostedContext(role: string, model: string, { recorder, hosted, connect }: RoleParts): RoleContext {
  return createHosted({ recorder, calls: hosted, connect, role })(model);
}
