/** Calls of a policy that is trained: recorded where its attempt is gathered, journaled in an attempt of another model. */
import { deriveSeed } from '../../core/numbers/seeds.ts';
import { playingAttempt, type PlayingAttempt } from './playing-attempt.ts';
import { withoutSlash } from '../../core/names/addresses.ts';
import { connectTo } from '../../play/connections/connect-hosted.ts';
import { findDialect } from '../../play/dialects/answer-request.ts';
import { createFetch } from '../../play/transports/fetch.ts';

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

interface OtherModel {
  readonly name: string;
  readonly inferenceBaseUrl: string | undefined;
  readonly inferenceApiKey: string | undefined;
}

type Body = Readonly<Record<string, unknown>>;

/** Null for a request that is no call of a model, such as one of embeddings. */
export function askOther(
  playing: PlayingAttempt,
  { name, inferenceBaseUrl: baseUrl = '', inferenceApiKey }: OtherModel,
  { url, init, body }: { readonly url: string; readonly init: RequestInit; readonly body: Body },
): Promise<Response> | null {
  const dialect = findDialect(url.slice(withoutSlash(baseUrl).length));
  if (dialect === null) return null;
  const model = String(body['model']);
  const kept = `${name}#${model}`;
  const named = { name, model, baseUrl, keyVariable: null, maxTokensName: null };
  const connection = connectTo({ ...named, key: inferenceApiKey ?? null });
  const fetch = playing.others.get(kept) ?? createFetch(playing.openHosted({ name, named, price: null, connection }));
  playing.others.set(kept, fetch);
  return fetch(`http://other-model.invalid/v1${dialect.path}`, { ...init, body: JSON.stringify(body) });
}
