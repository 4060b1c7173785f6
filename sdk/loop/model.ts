/**
 * Models of a project: one that is trained, and any other that plays the same rollouts. Agent files import this module
 * with the rest of the package: what only a registered model needs is loaded when one registers.
 */
import OpenAI from 'openai';

import { NAME_PATTERN } from '../../core/wire-constants.ts';
import type { Checkpoint } from '../../core/contract.ts';
import { TemperError } from '../../core/failures.ts';
import { policyName } from '../../core/policy-name.ts';
import { deriveSeed } from '../../core/seeds.ts';
import { checkOptions } from '../options/check-options.ts';
import { checkBaseUrl, clientFor } from '../../play/connections/providers.ts';
import { addressOf, createOpenAIClient } from '../../play/transports/openai-client.ts';
import type { Backend } from './backend.ts';
import type { DeleteCheckpointsOptions } from './delete-checkpoints.ts';
import type { LoopRun } from './loop-run.ts';
import type { ModelOptions, TrainableModelOptions } from './model-options.ts';
import { askOther } from './other-calls.ts';
import { playingAttempt } from './playing-attempt.ts';
import type { TrainedStep } from './take-step.ts';
import type { Chat, TrainOptions, TrainSftOptions } from './train-settings.ts';
import type { TrajectoryGroup } from './trajectory-group.ts';

/** Any model behind an OpenAI-compatible endpoint: a baseline, an opponent, a simulated user. */
export class Model {
  readonly name: string;
  readonly project: string;
  readonly config: unknown;
  inferenceBaseUrl: string | undefined;
  inferenceApiKey: string | undefined;
  inferenceModelName: string | undefined;

  constructor(options: ModelOptions) {
    checkOptions('Model', options);
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

  /** The official client. Temper records answers within a gathered attempt: a retry does not pay for them again. */
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
    return new TemperError(
      'BadConfig',
      `the model ${this.name} must have an inferenceBaseUrl before you can call it, it has none; pass one, such as https://api.openai.com/v1`,
    );
  }

  protected fetch(url: string, init: RequestInit): Promise<Response> {
    const playing = playingAttempt();
    const body = parseBody(init);
    if (playing === undefined || body === null || body['stream'] === true) return fetch(url, init);
    return askOther(playing, this.name, body, (asked) => fetch(url, { ...init, body: JSON.stringify(asked) }));
  }
}

export class TrainableModel extends Model {
  readonly baseModel: string;
  readonly #options: TrainableModelOptions;
  #registration: Promise<LoopRun> | null = null;
  #opened: LoopRun | null = null;
  #parent: Checkpoint | null = null;

  constructor(options: TrainableModelOptions) {
    super(asModel(checkOptions('TrainableModel', options)));
    this.#options = options;
    this.baseModel = options.baseModel;
    if (!NAME_PATTERN.test(this.runName)) throw badName(this.runName);
  }

  override get trainable(): boolean {
    return true;
  }

  /** The name of its run in the store, and on the command line. */
  get runName(): string {
    return `${this.project}.${this.name}`;
  }

  /** The model's run; throws if the model is not registered. */
  get run(): LoopRun {
    if (this.#opened !== null) return this.#opened;
    throw new TemperError(
      'BadConfig',
      `the model ${this.name} is not registered; call await model.register(backend) first`,
    );
  }

  /** Starts the model's run, or continues it at its last finished step. A second call has no effect. */
  async register(backend: Backend): Promise<void> {
    this.#registration ??= this.#begin(backend);
    try {
      this.#opened = await this.#registration;
    } catch (error) {
      this.#registration = null;
      throw error;
    }
    const { engineAddress } = this.#opened.backend;
    this.inferenceBaseUrl = `${engineAddress.url}/v1`;
    this.inferenceApiKey = engineAddress.key ?? 'none';
  }

  /** The checkpoint that a new model starts from: see `LocalBackend.forkCheckpoint`. */
  beginFrom(checkpoint: Checkpoint): void {
    if (this.#opened === null) this.#parent = checkpoint;
    else throw new TemperError('BadConfig', `${this.runName} is already registered; call fork before model.register`);
  }

  /** The last finished step; 0 before the first. */
  async getStep(): Promise<number> {
    return this.run.step;
  }

  /** `run@step`; by default of the current policy. */
  override getInferenceName(step?: number): string {
    const { checkpoint } = this.run;
    if (step !== undefined) return policyName({ ...checkpoint, step });
    const playing = playingAttempt();
    return playing?.run === this.runName ? playing.policy : policyName(checkpoint);
  }

  override openai(): OpenAI {
    const { inferenceBaseUrl: address, inferenceApiKey: key } = this;
    if (address === undefined || key === undefined) throw this.noAddress();
    return createOpenAIClient(clientFor(address, key), (url, init = {}) => this.fetch(addressOf(url), init));
  }

  /** Makes one optimizer step and commits it. For groups that were trained before it returns the recorded step. */
  async train(groups: Iterable<TrajectoryGroup>, options: TrainOptions = {}): Promise<TrainedStep> {
    const { trainGroups } = await import('./train-groups.ts');
    return trainGroups(this.run, [...groups], options);
  }

  /** Makes one optimizer step on chats and commits it as the next step of the run. */
  async trainSft(chats: Iterable<Chat>, options: TrainSftOptions = {}): Promise<TrainedStep> {
    const { trainChats } = await import('./train-chats.ts');
    return trainChats(this.run, [...chats], options);
  }

  /** Records gathered groups as the evaluation after the last step. */
  async log(groups: Iterable<TrajectoryGroup>, split = 'val'): Promise<void> {
    const { logEvaluation } = await import('./log-evaluation.ts');
    return logEvaluation(this.run, [...groups], split);
  }

  /** Removes the weights of all checkpoints except the newest and the best. */
  async deleteCheckpoints(options: DeleteCheckpointsOptions = {}): Promise<void> {
    const { deleteCheckpoints } = await import('./delete-checkpoints.ts');
    return deleteCheckpoints(this.run, options);
  }

  protected override noAddress(): TemperError {
    return new TemperError(
      'BadConfig',
      `the model ${this.name} is not registered, so it cannot be called; call await model.register(backend) first`,
    );
  }

  protected override fetch(url: string, init: RequestInit): Promise<Response> {
    const playing = playingAttempt();
    const asked = parseBody(init);
    if (asked === null) return fetch(url, init);
    const body = asked['model'] === this.name ? { ...asked, model: this.getInferenceName() } : asked;
    const named = { ...init, body: JSON.stringify(body) };
    if (playing === undefined) return fetch(url, named);
    if (playing.run === this.runName) return playing.fetch(url, named);
    const seed = deriveSeed([playing.seed, playing.attempt, this.runName]);
    return askOther(playing, this.runName, { seed, ...body }, (seeded) =>
      fetch(url, { ...init, body: JSON.stringify(seeded) }),
    );
  }

  async #begin(backend: Backend): Promise<LoopRun> {
    const { beginLoopRun } = await import('./begin-loop-run.ts');
    return beginLoopRun(await backend.open(this.baseModel, this.runName), this.#options, this.#parent);
  }
}

/** Its address is that of its backend's engine. */
function asModel({ name, project, config }: TrainableModelOptions): ModelOptions {
  return { name, project, config };
}

function badName(run: string): TemperError {
  return new TemperError(
    'BadConfig',
    `project and name of a model must together form a valid run name (lower case letters, digits and ._-, at most 63), got ${JSON.stringify(run)}; rename it`,
  );
}

function parseBody({ body }: RequestInit): Record<string, unknown> | null {
  if (typeof body !== 'string') return null;
  try {
    const parsed = JSON.parse(body) as unknown;
    return typeof parsed === 'object' ? (parsed as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}
