/** What the engine of this project could not sample from: refused before anything is started. */
import type { RunConfig } from '../../core/contract.ts';
import { loadConfig } from '../../workers/config.ts';
import type { Surroundings } from '../command-line/command.ts';
import { UsageError } from '../command-line/errors.ts';

export async function checkEngine(
  { train: { lora } }: RunConfig,
  engine: string | null,
  { project, env }: Pick<Surroundings, 'project' | 'env'>,
): Promise<void> {
  const { kind } = (await loadConfig(project, env)).engine;
  if ((engine ?? kind) !== 'vllm') return;
  if (lora === null)
    throw new UsageError(
      '--full-fine-tuning needs the embedded engine: vLLM takes only adapters per request; pass --engine embedded, or leave --full-fine-tuning out',
    );
  if (lora.dora !== true) return;
  throw new UsageError(
    '--lora-dora needs the embedded engine: vLLM loads no adapters with magnitudes (DoRA); pass --engine embedded, or leave --lora-dora out',
  );
}
