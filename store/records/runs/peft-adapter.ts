/** A LoRA adapter in PEFT's format, outside of the store: its settings, and the two files that a run starts from. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { firstIssue, type LoraConfig, type StartAdapter } from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { parseJson } from '../../../core/text/json-text.ts';
import type { RunOptions } from '../../../core/rules/run-defaults.ts';
import { blobRef } from '../../bytes/sha256.ts';

export const PEFT_CONFIG_FILE = 'adapter_config.json';
export const PEFT_WEIGHTS_FILE = 'adapter_model.safetensors';

/** PEFT's settings of an adapter's arithmetic. `target_modules` may be a pattern: the file's tensors decide. */
const PeftConfig = z.looseObject({
  peft_type: z.literal('LORA'),
  r: z.int().min(1),
  lora_alpha: z.number().positive(),
  use_rslora: z.boolean().nullish(),
  use_dora: z.boolean().nullish(),
  layers_to_transform: z.union([z.int().min(0), z.array(z.int().min(0))]).nullish(),
  base_model_name_or_path: z.string().nullish(),
});

/** Members without effect on what a saved adapter computes: its origin, initialisation and training. */
const FREE = new Set([
  ...Object.keys(PeftConfig.shape),
  ...'target_modules exclude_modules layers_pattern task_type auto_mapping inference_mode revision peft_version'.split(
    ' ',
  ),
  ...'lora_dropout qalora_group_size ensure_weight_tying runtime_config megatron_core'.split(' '),
  ...'eva_config corda_config loftq_config lora_ga_config'.split(' '),
]);
/** Values that switch off any other member, besides an empty one: PEFT keeps adding kinds of adapters. */
const OFF: Readonly<Record<string, readonly unknown[]>> = {
  bias: ['none'],
  // Others change the base model.
  init_lora_weights: [true, 'gaussian', 'orthogonal', 'eva'],
};

export interface PeftAdapter {
  readonly folder: string;
  readonly files: readonly Uint8Array[];
  readonly refs: StartAdapter;
  readonly lora: LoraConfig;
  /** Name in the folder's config; null if absent. */
  readonly baseModel: string | null;
}

/** Run options with the adapter's files, and with its shape unless they ask for another. */
export function startFrom(adapter: PeftAdapter | null, start: RunOptions): RunOptions {
  if (adapter === null) return start;
  const { refs: startAdapter, lora } = adapter;
  return { ...start, startAdapter, train: { ...start.train, lora: { ...lora, ...start.train?.lora } } };
}

/** `called`: what names the folder, in messages. */
export async function readPeftAdapter(folder: string, called: string): Promise<PeftAdapter> {
  const config = await readPart({ folder, called }, PEFT_CONFIG_FILE);
  const weights = await readPart({ folder, called }, PEFT_WEIGHTS_FILE);
  const fields = parseConfig({ folder, called }, config);
  const layers = fields.layers_to_transform ?? null;
  return {
    folder,
    files: [weights, config],
    refs: { weights: blobRef(weights), config: blobRef(config) },
    lora: {
      rank: fields.r,
      alpha: fields.lora_alpha,
      targetModules: targetsOf({ folder, called }, weights),
      dropout: 0,
      rslora: fields.use_rslora ?? false,
      dora: fields.use_dora ?? false,
      ...(layers === null ? {} : { layers: [layers].flat().toSorted((a, b) => a - b) }),
    },
    baseModel: fields.base_model_name_or_path || null,
  };
}

/** Compares the last parts of names: a folder, a name of the hub and one with a commit may be the same model. */
export function isOfModel({ baseModel }: PeftAdapter, name: string): boolean {
  return baseModel === null || lastPart(baseModel) === lastPart(name);
}

interface Named {
  readonly folder: string;
  readonly called: string;
}

async function readPart({ folder, called }: Named, name: string): Promise<Uint8Array> {
  try {
    return await readFile(join(folder, name));
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    throw badConfig(
      `${called} must be a folder with ${PEFT_CONFIG_FILE} and ${PEFT_WEIGHTS_FILE}, got ${folder} (${name}: ${reason}); save it with PEFT's save_pretrained`,
      { cause: error },
    );
  }
}

function parseConfig({ folder, called }: Named, bytes: Uint8Array): z.infer<typeof PeftConfig> {
  const found = PeftConfig.safeParse(parseJson(new TextDecoder().decode(bytes)) ?? null);
  if (!found.success)
    throw badConfig(
      `${called} must be a LoRA adapter as PEFT saves it, but ${PEFT_CONFIG_FILE} of ${folder} has ${firstIssue(found.error)}; pass another folder`,
    );
  for (const [name, value] of Object.entries(found.data)) {
    if (!FREE.has(name) && !isNothing(value) && OFF[name]?.includes(value) !== true)
      throw badConfig(
        `${called} must not use ${name} of PEFT, which Temper does not train, but ${folder} has ${JSON.stringify(value)}; pass an adapter without it`,
      );
  }
  return found.data;
}

function isNothing(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === null || value === undefined || value === false;
}

/** The last parts of the names of adapted modules, from the header of the safetensors file. */
function targetsOf({ folder, called }: Named, weights: Uint8Array): string[] {
  const length = weights.length < 8 ? 0n : new DataView(weights.buffer, weights.byteOffset).getBigUint64(0, true);
  const text = length > BigInt(weights.length) ? '' : new TextDecoder().decode(weights.subarray(8, 8 + Number(length)));
  const header = parseJson(text) ?? null;
  const names = header === null || typeof header !== 'object' ? [] : Object.keys(header);
  const targets = names.flatMap((name) => /(?:^|\.)([^.]+)\.lora_A\.weight$/.exec(name)?.[1] ?? []);
  if (targets.length > 0) return [...new Set(targets)].toSorted();
  throw badConfig(
    `${called} must hold tensors named ….lora_A.weight, but ${PEFT_WEIGHTS_FILE} of ${folder} has none; pass another folder`,
  );
}

/** Takes a path, a name of the hub, or such a name with a commit. */
function lastPart(name: string): string {
  const parts = name.replace(/@[^@/]*$/, '').split(/[/\\]/);
  return (parts.findLast((part) => part !== '') ?? '').toLowerCase();
}
