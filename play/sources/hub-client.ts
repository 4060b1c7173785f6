/**
 * The service that shows data sets of the Hugging Face hub (https://huggingface.co/docs/dataset-viewer): their splits,
 * pages of rows, and their conversion to Parquet. As for Hugging Face's own libraries, HF_ENDPOINT names another hub,
 * HF_TOKEN is sent to that hub and its service alone, and HF_HUB_OFFLINE forbids to ask them.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { TemperError } from '../../core/failures.ts';

const HUB = 'https://huggingface.co';
const ANSWER_MS = 60_000;
const TRIES = 6;
const FIRST_PAUSE_MS = 500;
/** Limits of the hub count requests of five minutes. */
const LONGEST_PAUSE_MS = 300_000;

/** In `X-Error-Code`: the service is still working on the data set. Other errors of status 500 stay. */
const NOT_READY = 'ResponseNotReady';

export interface Answer {
  readonly text: string;
  /** Commit of the data set that the answer was made from. */
  readonly revision: string | null;
}

export class HubClient {
  readonly #env: NodeJS.ProcessEnv;
  readonly #hub: string;

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#env = env;
    this.#hub = (env.HF_ENDPOINT || HUB).replace(/\/+$/, '');
  }

  /** `what` is for messages. */
  async ask(path: string, query: Readonly<Record<string, string>>, what: string): Promise<Answer> {
    const service = this.#hub.replace('https://', 'https://datasets-server.');
    const url = `${service}/${path}?${new URLSearchParams(query).toString()}`;
    return this.#retry(what, async () => {
      const response = await this.#get(url, AbortSignal.timeout(ANSWER_MS));
      const text = await response.text();
      if (!response.ok) throw this.#refusal(response, text, what);
      return { text, revision: response.headers.get('x-revision') };
    });
  }

  /** Passes the response on as soon as it has begun; a failure while it is read is tried again, too. */
  async download(url: string, what: string, save: (body: ReadableStream<Uint8Array>) => Promise<void>): Promise<void> {
    if (!URL.canParse(url) || new URL(url).origin !== new URL(this.#hub).origin) {
      const rule = `files of ${what} must be on ${this.#hub}, got ${url.slice(0, 200)}`;
      throw new TemperError('BadConfig', `${rule}; set HF_ENDPOINT to the hub that has them`);
    }
    await this.#retry(what, async () => {
      const response = await this.#get(url);
      if (!response.ok) throw this.#refusal(response, await response.text(), what);
      await save(response.body!);
    });
  }

  #get(url: string, signal?: AbortSignal): Promise<Response> {
    const token = this.#env.HF_TOKEN;
    // A redirect to another origin, where files of the hub are, does not get the token.
    return fetch(url, { headers: token ? { authorization: `Bearer ${token}` } : {}, ...(signal && { signal }) });
  }

  async #retry<T>(what: string, ask: () => Promise<T>): Promise<T> {
    if (/^(?:1|true|yes|on)$/i.test(this.#env.HF_HUB_OFFLINE ?? '')) {
      const rule = `${what} is not complete in Temper's cache, and HF_HUB_OFFLINE forbids to download it`;
      throw new TemperError('BadConfig', `${rule}; unset HF_HUB_OFFLINE, or name config and revision of what is there`);
    }
    for (let tried = 1; ; tried++) {
      try {
        return await ask();
      } catch (error) {
        const failure = error instanceof TemperError ? error : unavailable(what, describe(error), error);
        if (!failure.retryable || tried === TRIES) throw failure;
        await sleep(Math.min(failure.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tried - 1), LONGEST_PAUSE_MS));
      }
    }
  }

  #refusal(response: Response, text: string, what: string): TemperError {
    const { status, headers } = response;
    const said = `${status} ${messageOf(text)}`.trim();
    if (status === 429 || status > 500 || (status === 500 && headers.get('x-error-code') === NOT_READY))
      return unavailable(what, said, undefined, pauseOf(headers));
    const remedy = [401, 403, 404].includes(status)
      ? this.#accessRemedy()
      : 'correct the name, the config and the split';
    return new TemperError('BadConfig', `${what} cannot be read: ${said}; ${remedy}`);
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
