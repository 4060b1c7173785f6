/** What a run may not do otherwise than the checkpoint that it begins with. */
import type { RunConfig } from '../../core/contract.ts';
import { policyName } from '../../core/policy-name.ts';
import type { ConfiguredCheckpoint } from '../../store/records/find-policy.ts';
import { UsageError } from '../command-line/errors.ts';
import { loraDifference } from './lora-difference.ts';

export type Parent = Pick<ConfiguredCheckpoint, 'checkpoint' | 'config'>;

/** An adapter goes on on its own base model, which is settled: anything else is another adapter. */
export function checkSameBase(parent: Parent, { baseModel }: RunConfig): void {
  const { baseModel: own } = parent.config;
  if (own === baseModel) return;
  throw new UsageError(`--base-model must be ${own} (${reasonOf(parent)}), got ${baseModel}; pass --base-model ${own}`);
}

/** And in its own shape. */
export function checkSameShape(parent: Parent, config: RunConfig): void {
  const { config: recorded } = parent;
  const because = reasonOf(parent);
  if (config.train.lora === null && recorded.train.lora !== null)
    throw new UsageError(`--full-fine-tuning must stay off (${because}); leave it out`);
  if (config.train.lora !== null && recorded.train.lora === null)
    throw new UsageError(
      `--full-fine-tuning must stay on (${because}); pass it, and leave the flags of LoRA (--lora-…) out`,
    );
  const found = loraDifference(recorded.train.lora ?? {}, config.train.lora ?? {});
  if (found !== null)
    throw new UsageError(`${found.flag} must stay ${found.one} (${because}), got ${found.other}; leave it out`);
}

function reasonOf({ checkpoint, config }: Parent): string {
  return `the run continues the ${config.train.lora === null ? 'weights' : 'adapter'} of ${policyName(checkpoint)}`;
}
