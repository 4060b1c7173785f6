/** Calls of a policy that is trained: recorded where its attempt is gathered, journaled in an attempt of another model. */
import { deriveSeed } from '../../core/seeds.ts';
import { askOther } from './other-calls.ts';
import { playingAttempt } from './playing-attempt.ts';

export interface PolicyCaller {
  readonly name: string;
  /** Name of its model's run. */
  readonly runName: string;
  /** Null: the model itself, and not one of its roles. */
  readonly roleName: string | null;
  readonly inferenceBaseUrl: string | undefined;
  readonly inferenceApiKey: string | undefined;
  getInferenceName(): string;
}

export function askPolicy(caller: PolicyCaller, url: string, init: RequestInit): Promise<Response> {
  const { name, runName, roleName: role } = caller;
  const playing = playingAttempt();
  const asked = askedBody(init);
  if (asked === null) return fetch(url, init);
  const body = asked['model'] === name ? { ...asked, model: caller.getInferenceName() } : asked;
  const named = { ...init, body: JSON.stringify(body) };
  if (playing === undefined) return fetch(url, named);
  if (playing.run === runName) return playing.fetchAs(role)(url, named);
  const other = role === null ? runName : `${runName}:${role}`;
  const seed = deriveSeed([playing.seed, playing.attempt, other]);
  const { inferenceBaseUrl, inferenceApiKey } = caller;
  const asking = { url, init, body: { seed, ...body } };
  return askOther(playing, { name: other, inferenceBaseUrl, inferenceApiKey }, asking) ?? fetch(url, named);
}

export function askedBody({ body }: RequestInit): Record<string, unknown> | null {
  if (typeof body !== 'string') return null;
  try {
    const parsed = JSON.parse(body) as unknown;
    return typeof parsed === 'object' ? (parsed as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}
