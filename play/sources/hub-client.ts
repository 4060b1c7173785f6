/**
 * The service that shows data sets of the Hugging Face hub (https://huggingface.co/docs/dataset-viewer): their splits,
 * pages of rows, and their conversion to Parquet. As for Hugging Face's own libraries, HF_ENDPOINT names another hub,
 * HF_TOKEN is sent to that hub and its service alone, and HF_HUB_OFFLINE forbids to ask them.
 */
import { withoutSlash } from '../../core/names/addresses.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { readBoundedText } from '../../core/text/read-bounded.ts';
import { askAgain, type Patience } from './ask-again.ts';

const HUB = 'https://huggingface.co';
const ANSWER_MS = 60_000;
/** A download that is slower than 100 kB a second is given up. */
const LEAST_BYTES_PER_MS = 100;

/** In `X-Error-Code`: the service is still working on the data set. Other errors of status 500 stay. */
const NOT_READY = 'ResponseNotReady';

export interface Answer {
  readonly text: string;
  /** Commit of the data set that the answer was made from. */
  readonly revision: string | null;
}

export class HubClient {
  readonly #env: NodeJS.ProcessEnv;
  readonly #patience: Patience;
  readonly #hub: string;

  constructor(env: NodeJS.ProcessEnv = process.env, patience: Patience = {}) {
    this.#env = env;
    this.#patience = patience;
    this.#hub = withoutSlash(env.HF_ENDPOINT || HUB);
  }

  /** `what` is for messages. */
  async ask(path: string, query: Readonly<Record<string, string>>, what: string): Promise<Answer> {
    const service = this.#hub.replace('https://', 'https://datasets-server.');
    const url = `${service}/${path}?${new URLSearchParams(query).toString()}`;
    return this.#retry(what, async () => {
      const response = await this.#get(url, ANSWER_MS);
      const text = await readBoundedText(response);
      if (!response.ok) throw this.#refusal(response, text, what);
      return { text, revision: response.headers.get('x-revision') };
    });
  }

  /** Passes a file of `bytes` on as soon as it has begun; a failure while it is read is tried again, too. */
  async download(
    { url, bytes }: { readonly url: string; readonly bytes: number },
    what: string,
    save: (body: ReadableStream<Uint8Array>) => Promise<void>,
  ): Promise<void> {
    if (!URL.canParse(url) || new URL(url).origin !== new URL(this.#hub).origin) {
      const rule = `files of ${what} must be on ${this.#hub}, got ${url.slice(0, 200)}`;
      throw badConfig(`${rule}; set HF_ENDPOINT to the hub that has them`);
    }
    await this.#retry(what, async () => {
      const response = await this.#get(url, ANSWER_MS + Math.ceil(bytes / LEAST_BYTES_PER_MS));
      if (!response.ok) throw this.#refusal(response, await readBoundedText(response), what);
      await save(response.body!);
    });
  }

  #get(url: string, withinMs: number): Promise<Response> {
    const token = this.#env.HF_TOKEN;
    const signal = AbortSignal.any([AbortSignal.timeout(withinMs), ...[this.#patience.signal ?? []].flat()]);
    // A redirect to another origin, where files of the hub are, does not get the token.
    return fetch(url, { headers: token ? { authorization: `Bearer ${token}` } : {}, signal });
  }

  async #retry<T>(what: string, ask: () => Promise<T>): Promise<T> {
    if (/^(?:1|true|yes|on)$/i.test(this.#env.HF_HUB_OFFLINE ?? '')) {
      const rule = `${what} is not complete in Temper's cache, and HF_HUB_OFFLINE forbids to download it`;
      throw badConfig(`${rule}; unset HF_HUB_OFFLINE, or name config and revision of what is there`);
    }
    const explained = (error: unknown): never => {
      if (error instanceof TemperError || this.#patience.signal?.aborted === true) throw error;
      throw unavailable(what, describe(error), error);
    };
    return askAgain(() => ask().catch(explained), this.#patience);
  }

  #refusal(response: Response, text: string, what: string): TemperError {
    const { status, headers } = response;
    const said = `${status} ${messageOf(text)}`.trim();
    if (status === 429 || status > 500 || (status === 500 && headers.get('x-error-code') === NOT_READY))
      return unavailable(what, said, undefined, pauseOf(headers));
    const remedy = [401, 403, 404].includes(status)
      ? this.#accessRemedy()
      : 'correct the name, the config and the split';
    return badConfig(`${what} cannot be read: ${said}; ${remedy}`);
  }

  /** The hub answers alike for a data set that does not exist and for one that the caller may not see. */
  #accessRemedy(): string {
    const name = 'correct its name, config and split';
    return this.#env.HF_TOKEN
      ? `${name}, or set HF_TOKEN to a token of an account that may read it`
      : `${name}, or set HF_TOKEN if it is private or gated`;
  }
}

function unavailable(what: string, said: string, cause?: unknown, retryAfterMs?: number): TemperError {
  const remedy = 'check the network and https://status.huggingface.co, and run the command again';
  const options = {
    ...(cause === undefined ? {} : { cause }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
  return new TemperError('SourceUnavailable', `${what} cannot be read now: ${said}; ${remedy}`, options);
}

/** `{"error": "…"}` of the service; another server on the way answers with a page. */
function messageOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === 'string' ? error.slice(0, 300) : '';
  } catch {
    return '';
  }
}

/** From `Retry-After`, or the hub's `RateLimit: "api";r=0;t=56`: seconds until requests are free again. */
function pauseOf(headers: Headers): number | undefined {
  const told = headers.get('retry-after') ?? /(?:^|;)\s*t=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1];
  const seconds = Number(told);
  return told == null || !Number.isFinite(seconds) ? undefined : seconds * 1000;
}

function describe(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== '' ? `${message} (${cause.message})` : message;
}
