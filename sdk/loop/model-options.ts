/** The options of a model. */
import type { LoraConfig, RolloutConfig } from '../../core/contract/contract.ts';
import type { PolicyPlayer } from '../../play/roles/role-definition.ts';

export interface ModelOptions {
  name: string;
  project: string;
  /** For the script's own use: stored on the model object, not read by Temper. */
  config?: unknown;
  /** Address and key of its endpoint, and its name there; the name defaults to `name`. */
  inferenceBaseUrl?: string;
  inferenceApiKey?: string;
  inferenceModelName?: string;
}

export interface TrainableModelOptions {
  name: string;
  project: string;
  /** `pocket`, a name of temporal.config.ts, a folder, an OWNER/NAME of the Hugging Face hub, or s3://BUCKET/PREFIX. */
  baseModel: string;
  config?: unknown;
  /** The seed of all random choices. */
  seed?: number;
  /** Null: all weights are trained, without an adapter. */
  lora?: Partial<LoraConfig> | null;
  /** The folder of a PEFT adapter to begin with: its rank, alpha and modules are the model's. */
  adapter?: string;
  /** Its players, by name: the policies that the model trains, an adapter each. A script calls them as `model.role(name)`. */
  roles?: Readonly<Record<string, PolicyPlayer>>;
  /** Roles' rewards oppose each other: each is compared with the running mean of its role. */
  competing?: boolean;
  /** A chat template of its own is an option of `temper train` alone: scripts have no way to store one. */
  rollout?: Partial<Omit<RolloutConfig, 'chatTemplateSha256'>>;
}
