/** Writes a policy in another program's format with the GPU worker's Python: `temper_gpu.process.export`. */
import { z } from 'zod';

import type { InstallOptions } from '../install/install.ts';
import { runPythonProgram } from './run-program.ts';

/** The file of the format gguf. */
export const GGUF_FILE = 'model.gguf';

export interface PolicyExport extends InstallOptions {
  readonly storeUri: string;
  /** File with the base models that this host knows. */
  readonly models: string;
  /** `run@step`, with `:policy` for another one than `main`. */
  readonly policy: string;
  readonly chatTemplateSha256: string | undefined;
  /** An empty one. */
  readonly folder: string;
  readonly format: 'merged' | 'gguf' | 'mlx';
  readonly dtype: 'float32' | 'bfloat16' | 'float16';
  readonly quantize?: 'q8_0' | null;
}

const Exported = z.object({
  /** Revision of a base model from a hub. */
  revision: z.string().nullable(),
  /** Share of the adapter's change that is left after rounding; null if nothing was merged, or it changes nothing. */
  kept: z.number().nullable(),
});
export type Exported = z.infer<typeof Exported>;

/** `exported`: null if it failed for a reason that Python does not name, which `lastLine` may tell. */
export async function exportByPython(
  work: PolicyExport,
): Promise<{ readonly exported: Exported | null; readonly lastLine: string }> {
  const { storeUri: store, policy, models, folder: to, dtype, format, quantize, chatTemplateSha256: template } = work;
  const flags = {
    store,
    policy,
    models,
    to,
    dtype,
    ...(format === 'merged' ? {} : { format }),
    quantize,
    'chat-template-sha256': template,
  };
  const { answer, lastLine } = await runPythonProgram({ ...work, name: 'export', flags });
  return { exported: answer === null ? null : Exported.parse(answer), lastLine };
}
