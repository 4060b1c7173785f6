/** A folder as PEFT saves an adapter. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const PEFT_CONFIG = {
  peft_type: 'LORA',
  base_model_name_or_path: 'somebody/pocket',
  r: 8,
  lora_alpha: 24,
  target_modules: '.*(q_proj|v_proj)',
  bias: 'none',
  rank_pattern: {},
  modules_to_save: null,
  use_rslora: true,
  layers_to_transform: 1,
};

const MODULES = ['self_attn.v_proj', 'self_attn.q_proj'];

/** A safetensors file is the length of its header, the header, and the numbers, which nobody reads here. */
export async function writePeftAdapter(
  folder: string,
  config: object = PEFT_CONFIG,
  names = MODULES.map((name) => `base_model.model.model.layers.1.${name}.lora_A.weight`),
): Promise<void> {
  const header = Buffer.from(JSON.stringify(Object.fromEntries(names.map((name) => [name, { dtype: 'F32' }]))));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'adapter_config.json'), JSON.stringify(config));
  await writeFile(join(folder, 'adapter_model.safetensors'), Buffer.concat([length, header]));
}
