/** `adapter` of a `TrainableModel`: a PEFT adapter that its run begins with. */
import { resolve } from 'node:path';
import type { Checkpoint, RunConfig } from '../../core/contract.ts';
import { badConfig, type TemperError } from '../../core/failures.ts';
import { differingLoraOption } from '../../core/lora-difference.ts';
import { isOfModel, PEFT_CONFIG_FILE, readPeftAdapter, type PeftAdapter } from '../../store/records/peft-adapter.ts';
import type { TrainableModelOptions } from './model-options.ts';

/** Null where none is given. A folder is looked for from the script's working folder. */
export async function readAdapter(
  { adapter, lora }: TrainableModelOptions,
  parent: Checkpoint | null,
): Promise<PeftAdapter | null> {
  if (adapter === undefined) return null;
  if (lora === null) throw refused('has no effect with lora: null (all weights are trained, without an adapter)');
  if (parent !== null)
    throw refused('has no effect after forkCheckpoint (a fork begins with the adapter of its parent)');
  return readPeftAdapter(resolve(adapter), 'adapter of TrainableModel');
}

/** The model trains this adapter in its own shape, on its own base model. */
export function checkAdapter(adapter: PeftAdapter | null, { baseModel, train }: RunConfig): void {
  if (adapter === null) return;
  if (!isOfModel(adapter, baseModel))
    throw refused(
      `was trained on ${adapter.baseModel}, but baseModel is ${baseModel}`,
      `pass that one, or correct base_model_name_or_path in its ${PEFT_CONFIG_FILE} if both are the same model`,
    );
  const found = differingLoraOption(adapter.lora, train.lora ?? {}, ['dropout']);
  if (found !== null)
    throw refused(
      `has ${found.option} ${found.one}, but lora asks for ${found.other}`,
      `leave ${found.option} out of lora`,
    );
}

function refused(why: string, remedy = 'leave one of them out'): TemperError {
  return badConfig(`adapter of TrainableModel ${why}; ${remedy}`);
}
