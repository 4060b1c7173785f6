/** Recorded calls of one attempt to the model that is gathered: through a role, where the model has roles. */
import { badConfig } from '../../core/failures.ts';
import type { Answerer } from '../../play/dialects/answer-request.ts';
import type { Recorder } from '../../play/recorder/recorder.ts';
import type { RolePlayers } from '../../play/roles/role-definition.ts';
import { seatedAnswerer } from '../../play/roles/role-contexts.ts';
import { createFetch, type Fetch } from '../../play/transports/fetch.ts';

/** `players`: null without roles. A call of the model itself ends the attempt where it has roles. */
export function createAttemptFetch(
  model: string,
  players: RolePlayers | null,
  recorder: Recorder,
): (role: string | null) => Fetch {
  if (players === null) {
    const fetch = createFetch(recorder);
    return () => fetch;
  }
  const roles = Object.entries(players.seated);
  const fetches = new Map(
    roles.map(([role, policy]) => [role, createFetch(seatedAnswerer(recorder, { role, policy }))]),
  );
  const refusing = createFetch(
    refusePlain(
      recorder,
      roles.map(([role]) => role),
      model,
    ),
  );
  return (role) => (role === null ? refusing : (fetches.get(role) ?? refusing));
}

function refusePlain(recorder: Recorder, roles: readonly string[], model: string): Answerer {
  const error = badConfig(
    `an attempt of the model ${model} must call one of its roles (${roles.join(', ')}), got a call of model.openai(); call model.role('${roles[0]}').openai()`,
  );
  const refuse = () => recorder.refuse(error);
  return { call: async () => Promise.reject(await refuse()), refuse };
}
