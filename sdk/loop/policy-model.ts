/** Models that are trained, as a script calls them: the run's policy, or that of one of its roles. */
import type OpenAI from 'openai';

import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { policyName } from '../../core/names/policy-name.ts';
import { MAIN_POLICY } from '../../core/contract/wire-constants.ts';
import { clientFor } from '../../play/connections/providers.ts';
import { addressOf, createOpenAIClient } from '../../play/transports/model-client.ts';
import type { LoopRun } from './loop-run.ts';
import { Model } from './model.ts';
import { playingAttempt } from './playing-attempt.ts';
import { askPolicy, type PolicyCaller } from './policy-calls.ts';

export abstract class PolicyModel extends Model implements PolicyCaller {
  /** The name of its run in the store, and on the command line. */
  abstract get runName(): string;
  abstract get run(): LoopRun;

  override get trainable(): boolean {
    return true;
  }

  /** Null: the model itself. */
  get roleName(): string | null {
    return null;
  }

  /** Name of the policy that answers. */
  protected get policy(): string {
    return MAIN_POLICY;
  }

  /** `run@step`, with `:policy` of another policy than `main`; by default of the current checkpoint. */
  override getInferenceName(step?: number): string {
    const { policy, runName } = this;
    const { checkpoint } = this.run;
    const playing = playingAttempt();
    const now = playing?.run === runName ? playing.checkpoint : checkpoint;
    return policyName(step === undefined ? { ...now, policy } : { ...checkpoint, step, policy });
  }

  override openai(): OpenAI {
    const { inferenceBaseUrl: address, inferenceApiKey: key } = this;
    if (address === undefined || key === undefined) throw this.noAddress();
    return createOpenAIClient(clientFor(address, key), (url, init = {}) => this.fetch(addressOf(url), init));
  }

  protected override noAddress(): TemperError {
    return badConfig(
      `the model ${this.name} is not registered, so it cannot be called; call await model.register(backend) first`,
    );
  }

  protected override fetch(url: string, init: RequestInit): Promise<Response> {
    return askPolicy(this, url, init);
  }
}

/** One role of a trainable model. As `model`, pass its name, which is the role's, or its inference name. */
export class RoleModel extends PolicyModel {
  readonly #model: PolicyModel;
  readonly #policy: string;

  constructor(model: PolicyModel, { role, policy }: { role: string; policy: string }) {
    super({ name: role, project: model.project, config: model.config });
    this.#model = model;
    this.#policy = policy;
  }

  override get runName(): string {
    return this.#model.runName;
  }

  override get run(): LoopRun {
    return this.#model.run;
  }

  override get roleName(): string {
    return this.name;
  }

  protected override get policy(): string {
    return this.#policy;
  }

  /** The model may have been registered since. */
  override openai(): OpenAI {
    const { inferenceBaseUrl, inferenceApiKey } = this.#model;
    Object.assign(this, { inferenceBaseUrl, inferenceApiKey });
    return super.openai();
  }
}
