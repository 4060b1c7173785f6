/** What an engine may be, what it may compute on, and with which numbers. */
import { DEVICE_PATTERN, type DTYPES, type ENGINES } from '../../core/wire-constants.ts';

export const DEVICE = { pattern: DEVICE_PATTERN, rule: 'auto, cpu, cuda or cuda:N' } as const;
type Dtype = (typeof DTYPES)[number];
export type EngineKind = (typeof ENGINES)[number];

interface EngineChoices {
  /** Null: by the machine and the run (`decideEngine`). */
  readonly kind: EngineKind | null;
  readonly device: string;
  readonly dtype: Dtype;
  readonly devices: number;
  readonly shardBaseModel: boolean;
  readonly loadIn4bit: boolean;
}

/** What a command asks of the engine; null, false or absent: as `temporal.config.ts` has it. */
export interface AskedEngine {
  readonly engine?: EngineKind | null;
  readonly device?: string | null;
  readonly dtype?: Dtype | null;
  readonly devices?: number | null;
  readonly shardBaseModel?: boolean;
  readonly loadIn4bit?: boolean;
}

/** With a kind, whoever decided it. */
export type Chosen<Configured> = Configured & { readonly kind: EngineKind };

/** The engine that a command gets. `usual`: where neither a flag nor the configuration says which. */
export function chosenEngine<Configured extends EngineChoices>(
  configured: Configured,
  asked: AskedEngine,
  usual: EngineKind = 'embedded',
): Chosen<Configured> {
  return {
    ...configured,
    kind: asked.engine ?? configured.kind ?? usual,
    device: asked.device ?? configured.device,
    dtype: asked.dtype ?? configured.dtype,
    devices: asked.devices ?? configured.devices,
    shardBaseModel: asked.shardBaseModel === true || configured.shardBaseModel,
    loadIn4bit: asked.loadIn4bit === true || configured.loadIn4bit,
  };
}
