/** A model that is not trained: a baseline, an opponent, a simulated user. */
import OpenAI from 'openai';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { given, optional, takes } from '../options/options.ts';
import { checkBaseUrl, clientFor } from '../../play/connections/providers.ts';
import { addressOf } from '../../play/transports/model-client.ts';
import type { ModelOptions } from './model-options.ts';
import { askOther, askedBody } from './policy-calls.ts';
import { playingAttempt } from './playing-attempt.ts';

const checkOptions = takes<ModelOptions>('Model', {
  ...given('name', 'project'),
  ...optional('config', 'inferenceBaseUrl', 'inferenceApiKey', 'inferenceModelName'),
});

/** Any model behind an OpenAI-compatible endpoint: a baseline, an opponent, a simulated user. */
export class Model {
  readonly name: string;
  readonly project: string;
  readonly config: unknown;
  inferenceBaseUrl: string | undefined;
  inferenceApiKey: string | undefined;
  inferenceModelName: string | undefined;

  constructor(options: ModelOptions) {
    checkOptions(options);
    this.name = options.name;
    this.project = options.project;
    this.config = options.config ?? null;
    this.inferenceBaseUrl = options.inferenceBaseUrl;
    this.inferenceApiKey = options.inferenceApiKey;
    this.inferenceModelName = options.inferenceModelName;
  }

  get trainable(): boolean {
    return false;
  }

  /** To be passed as `model`. */
  getInferenceName(): string {
    return this.inferenceModelName ?? this.name;
  }

  /** The official client. Within a gathered attempt, Temper waits for answers and records them, as of hosted models. */
  openai(): OpenAI {
    const { inferenceBaseUrl: address, inferenceApiKey: key = null } = this;
    if (address === undefined) throw this.noAddress();
    checkBaseUrl(`the inferenceBaseUrl of the model ${this.name}`, address);
    return new OpenAI({
      ...clientFor(address, key),
      fetch: (url, init) => this.fetch(addressOf(url), init ?? {}),
    });
  }

  protected noAddress(): TemperError {
    return badConfig(
      `the model ${this.name} must have an inferenceBaseUrl before you can call it, it has none; pass one, such as https://api.openai.com/v1`,
    );
  }

  protected fetch(url: string, init: RequestInit): Promise<Response> {
    const playing = playingAttempt();
    const body = askedBody(init);
    const answered = playing === undefined || body === null ? null : askOther(playing, this, { url, init, body });
    return answered ?? fetch(url, init);
  }
}
