/** Answers of the GPU worker's program `export`. */
import { z } from 'zod';

/** The file of the format gguf. */
export const GGUF_FILE = 'model.gguf';

export const Exported = z.object({
  /** Revision of a base model from a hub. */
  revision: z.string().nullable(),
  /** Share of the adapter's change that is left after rounding; null if nothing was merged, or it changes nothing. */
  kept: z.number().nullable(),
});
export type Exported = z.infer<typeof Exported>;
