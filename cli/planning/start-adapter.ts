/** `--adapter FOLDER`: a PEFT adapter that a run starts from. Its two files go into the store under their hashes. */
import { resolve } from 'node:path';
import type { RunConfig } from '../../core/contract.ts';
import { differingLoraOption } from '../../core/lora-difference.ts';
import { isOfModel, PEFT_CONFIG_FILE, readPeftAdapter, type PeftAdapter } from '../../store/records/peft-adapter.ts';
import { UsageError } from '../command-line/errors.ts';
import { loraFlag } from './run-flags.ts';

/** Null if none was given. */
export async function readStartAdapter(text: string | null, cwd: string): Promise<PeftAdapter | null> {
  return text === null ? null : readPeftAdapter(resolve(cwd, text), '--adapter');
}

/** Shape and base model of the run must be those of the adapter. */
export function checkStartAdapter(adapter: PeftAdapter | null, config: RunConfig): void {
  if (adapter === null) return;
  const { folder, lora, baseModel } = adapter;
  if (!isOfModel(adapter, config.baseModel))
    throw new UsageError(
      `--base-model must be the model that --adapter ${folder} was trained on, ${baseModel}, got ${config.baseModel}; pass that one, or correct base_model_name_or_path in its ${PEFT_CONFIG_FILE} if both are the same model`,
    );
  const found = differingLoraOption(lora, config.train.lora ?? {}, ['dropout']);
  if (found !== null)
    throw new UsageError(
      `${loraFlag(found)} must stay ${found.one} (the run begins with --adapter ${folder}), got ${found.other}; leave it out`,
    );
}
