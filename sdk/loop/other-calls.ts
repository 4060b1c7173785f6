/**
 * Calls of models that are not the one that is played (an opponent, a judge, a simulated user): the attempt makes them as
 * it calls hosted models. An outage is waited for, and an attempt that is repeated gets the answers that were received.
 */
import { withoutSlash } from '../../core/addresses.ts';
import { connectTo } from '../../play/hosted/connect-hosted.ts';
import { findDialect } from '../../play/dialects/find-dialect.ts';
import { createFetch } from '../../play/transports/fetch.ts';
import type { PlayingAttempt } from './playing-attempt.ts';

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
