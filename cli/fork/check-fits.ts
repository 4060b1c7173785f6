/** What a run may not do otherwise than the checkpoint that it begins with. */
import type { RunConfig } from '../../core/contract.ts';
import { policyName } from '../../core/policy-name.ts';
import type { ConfiguredCheckpoint } from '../../store/records/find-policy.ts';
import { UsageError } from '../command-line/errors.ts';
import { loraDifference } from '../train/lora-difference.ts';

export type Parent = Pick<ConfiguredCheckpoint, 'checkpoint' | 'config'>;

/** An adapter goes on in its own shape on its own base model: anything else is another adapter. */
export function checkFits({ checkpoint, config: recorded }: Parent, config: RunConfig): void {
  const name = policyName(checkpoint);
  const because = `the run continues the ${recorded.train.lora === null ? 'weights' : 'adapter'} of ${name}`;
  if (recorded.baseModel !== config.baseModel)
    throw new UsageError(
      `--base-model must be ${recorded.baseModel} (${because}), got ${config.baseModel}; pass --base-model ${recorded.baseModel}`,
    );
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
