/**
 * The service that shows data sets of the Hugging Face hub (https://huggingface.co/docs/dataset-viewer): their splits,
 * pages of rows, and their conversion to Parquet. As for Hugging Face's own libraries, HF_ENDPOINT names another hub,
 * HF_TOKEN is sent to that hub and its service alone, and HF_HUB_OFFLINE forbids to ask them.
 */
import { withoutSlash } from '../../core/names/addresses.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { callHttp, explainRefusal, messageOf, type HttpRequest, type TargetAnswer } from '../../core/text/http.ts';
import { askAgain, type Patience } from './ask-again.ts';

const HUB = 'https://huggingface.co';
const ANSWER_MS = 60_000;
/** A download that is slower than 100 kB a second is given up. */
const LEAST_BYTES_PER_MS = 100;
const MOST_SAID = 300;

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
    const { text, headers } = await this.#call(what, { url, timeoutMs: ANSWER_MS });
    return { text, revision: headers.get('x-revision') };
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
    await this.#call(what, { url, timeoutMs: ANSWER_MS + Math.ceil(bytes / LEAST_BYTES_PER_MS), save });
  }

  #call(what: string, request: HttpRequest): Promise<TargetAnswer> {
    if (/^(?:1|true|yes|on)$/i.test(this.#env.HF_HUB_OFFLINE ?? '')) {
      const rule = `${what} is not complete in Temper's cache, and HF_HUB_OFFLINE forbids to download it`;
      throw badConfig(`${rule}; unset HF_HUB_OFFLINE, or name config and revision of what is there`);
    }
    const caller = {
      system: what,
      keyVariable: 'HF_TOKEN',
      key: this.#env.HF_TOKEN || null,
      outage: 'SourceUnavailable',
      remedy: 'check the network and https://status.huggingface.co, and run the command again',
      // Files of the hub are on other servers.
      followsRedirects: true,
      fetch,
      signal: this.#patience.signal ?? new AbortController().signal,
    } as const;
    return askAgain(async () => {
      const answer = await callHttp(caller, { ...request, expected: 'all' });
      const { status, headers } = answer;
      if (status >= 200 && status < 300) return answer;
      const isOutage = status === 429 || status > 500 || (status === 500 && headers.get('x-error-code') === NOT_READY);
      throw isOutage ? explainRefusal(caller, request, answer) : this.#refusal(what, answer);
    }, this.#patience);
  }

  /** The hub answers alike for a data set that does not exist and for one that the caller may not see. */
  #refusal(what: string, { status, text }: TargetAnswer): TemperError {
    const token = this.#env.HF_TOKEN
      ? 'set HF_TOKEN to a token of an account that may read it'
      : 'set HF_TOKEN if it is private or gated';
    const access = [401, 403, 404].includes(status) ? `, or ${token}` : '';
    const said = `${status} ${messageOf(text).slice(0, MOST_SAID)}`.trim();
    return badConfig(`${what} cannot be read: ${said}; correct its name, config and split${access}`);
  }
}
