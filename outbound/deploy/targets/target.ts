/** A deployment's target: stages, each of which finds what an earlier try made before it makes anything. */
import type { Made, RecordedDeployment } from '../../../store/records/production/deployments.ts';
import type { Store } from '../../../store/store.ts';

/** OpenAI-compatible chat completions of what was deployed. */
export interface DeployAddress {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Environment variable with the key; null: none is needed. */
  readonly keyVariable: string | null;
}

/** A file of the folder in PEFT's format that is deployed. */
export interface DeployFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly read: () => Promise<Uint8Array>;
}

export interface StageContext {
  readonly store: Store;
  readonly deployment: RecordedDeployment;
  /** Outcomes of the earlier stages, by their names. */
  readonly made: Readonly<Record<string, Made>>;
  readonly env: NodeJS.ProcessEnv;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  /** Adapter, its config with the base model's name at the target, the chat template, the model card. */
  readonly files: () => Promise<readonly DeployFile[]>;
  readonly writeGguf: WriteGguf;
}

/** The merged model in llama.cpp's format, with weights in 16 bits unless they are quantized. */
export interface GgufRequest {
  readonly policy: string;
  readonly chatTemplateSha256: string | null;
  /** An empty one. */
  readonly folder: string;
  readonly quantize: 'q8_0' | null;
  readonly signal: AbortSignal;
}

/** Returns the file, whose bytes depend on the request alone. */
export type WriteGguf = (request: GgufRequest) => Promise<string>;

/** `waitingFor`: the stage is run again after a pause, for days if need be. */
export type StageOutcome = { readonly made: Made } | { readonly waitingFor: string };

export interface DeployStage {
  readonly name: string;
  run(context: StageContext): Promise<StageOutcome>;
}

export interface DeployTarget {
  readonly name: string;
  /** Stages for these options, in order; without the proof, which is the last one of every deployment. */
  stages(deployment: Pick<RecordedDeployment, 'options'>): readonly DeployStage[];
  /** Null: nothing answers there. */
  address(
    deployment: Pick<RecordedDeployment, 'options'>,
    made: StageContext['made'],
    env: NodeJS.ProcessEnv,
  ): DeployAddress | null;
  /**
   * The proof of a target where nothing answers: its files are compared, by hash, with those that were to be deployed.
   * Returns what differs, in words; null if nothing does.
   */
  verify?(context: StageContext): Promise<string | null>;
}

/** The answers to prompts of a checkpoint's held-out scenarios, judged. */
export interface Proof {
  readonly verdict:
    | 'matches'
    | 'adapter-absent'
    | 'wrong-scale'
    | 'wrong-base-model'
    | 'missing-target-module'
    | 'wrong-chat-template'
    | 'different';
  /** For people: what was compared, and by how much it differs. */
  readonly detail: string;
  readonly prompts: number;
  readonly measured: Readonly<Record<string, number>>;
}

export interface ProofRequest {
  readonly store: Store;
  readonly deployment: RecordedDeployment;
  readonly address: DeployAddress;
  /** The key of the address. */
  readonly key: string | null;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
}
