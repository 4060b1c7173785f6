/**
 * A model that a script trains. Agent files import this module with the rest of the package: what only a registered
 * model needs is loaded when one registers.
 */
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import type { Checkpoint } from '../../core/contract/contract.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { given, optional, takes } from '../options/options.ts';
import { findModelRolesProblem } from '../roles/check-roles.ts';
import type { Backend } from './backend.ts';
import type { DeleteCheckpointsOptions } from './delete-checkpoints.ts';
import type { LoopRun } from './loop-run.ts';
import type { ModelOptions, TrainableModelOptions } from './model-options.ts';
import { PolicyModel, RoleModel } from './policy-model.ts';
import type { TrainedStep } from './take-step.ts';
import type { Chat, TrainOptions, TrainSftOptions } from './train-settings.ts';
import type { TrajectoryGroup } from './trajectory-group.ts';

const checkOptions = takes<TrainableModelOptions>('TrainableModel', {
  ...given('name', 'project', 'baseModel'),
  ...optional('config', 'seed', 'lora', 'adapter', 'roles', 'competing', 'rollout'),
});

export class TrainableModel extends PolicyModel {
  readonly baseModel: string;
  readonly #options: TrainableModelOptions;
  #registration: Promise<LoopRun> | null = null;
  #opened: LoopRun | null = null;
  #parent: Checkpoint | null = null;

  constructor(options: TrainableModelOptions) {
    super(asModel(checkOptions(options)));
    this.#options = options;
    this.baseModel = options.baseModel;
    if (!NAME_PATTERN.test(this.runName)) throw badName(this.runName);
    const problem = findModelRolesProblem(this.name, options);
    if (problem !== null) throw badConfig(problem);
  }

  /** The name of its run in the store, and on the command line. */
  override get runName(): string {
    return `${this.project}.${this.name}`;
  }

  /** The model's run; throws if the model is not registered. */
  override get run(): LoopRun {
    if (this.#opened !== null) return this.#opened;
    throw badConfig(`the model ${this.name} is not registered; call await model.register(backend) first`);
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
    else throw badConfig(`${this.runName} is already registered; call fork before model.register`);
  }

  /** The last finished step; 0 before the first. */
  async getStep(): Promise<number> {
    return this.run.step;
  }

  /** One of its roles, to be called in an attempt; throws if the model has none of this name. */
  role(name: string): RoleModel {
    const { roles = {} } = this.#options;
    if (Object.hasOwn(roles, name)) return new RoleModel(this, { role: name, policy: roles[name]!.policy });
    const known = Object.keys(roles);
    const remedy = known.length === 0 ? `pass roles: { ${name}: policy() }` : `call one of ${known.join(', ')}`;
    throw badConfig(
      `the model ${this.name} must have the role ${JSON.stringify(name)}, and has none of this name; ${remedy}`,
    );
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
  return badConfig(
    `project and name of a model must together form a valid run name (lower case letters, digits and ._-, at most 63), got ${JSON.stringify(run)}; rename it`,
  );
}
