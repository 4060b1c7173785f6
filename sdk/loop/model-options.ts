/** What a script says of a model. */
import type { LoraConfig, RolloutConfig } from '../../core/contract.ts';

export interface ModelOptions {
  name: string;
  project: string;
  /** The script's own; kept with the model object, never looked at. */
  config?: unknown;
  /** Where it is asked, and under which name; without the name it is `name`. */
  inferenceBaseUrl?: string;
  inferenceApiKey?: string;
  inferenceModelName?: string;
}

export interface TrainableModelOptions {
  name: string;
  project: string;
  /** `pocket`, a name of temporal.config.ts, a folder, or an OWNER/NAME of the Hugging Face hub. */
  baseModel: string;
  config?: unknown;
  /** Everything that is drawn follows from it. */
  seed?: number;
  lora?: Partial<LoraConfig>;
  rollout?: Partial<RolloutConfig>;
}
