/** vLLM 0.32: `vllm/entrypoints/serve/lora` and `/v1/models`. It loads an adapter if its folder has PEFT's files. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

import { Refused, startStandIn, type StandIn, type StandInOptions } from '../stand-in.ts';

const Load = z.strictObject({ lora_name: z.string(), lora_path: z.string(), load_inplace: z.boolean().optional() });
const Unload = z.strictObject({ lora_name: z.string(), lora_int_id: z.int().optional() });

export interface VllmStandIn extends StandIn {
  /** Path by name. */
  readonly adapters: Map<string, string>;
}

export async function startVllm(options: Omit<StandInOptions, 'routes'>): Promise<VllmStandIn> {
  const adapters = new Map<string, string>();
  const standIn = await startStandIn({
    ...options,
    routes: [
      {
        method: 'GET',
        path: /^\/v1\/models$/,
        answer: () => ({
          json: {
            object: 'list',
            data: [
              { id: 'base', object: 'model', root: '/models/base', parent: null },
              ...[...adapters].map(([id, root]) => ({ id, object: 'model', root, parent: 'base' })),
            ],
          },
        }),
      },
      {
        method: 'POST',
        path: /^\/v1\/load_lora_adapter$/,
        answer({ json }) {
          const { lora_name: name, lora_path: path, load_inplace: isInplace = false } = json(Load);
          if (adapters.has(name) && !isInplace)
            throw new Refused(400, `The lora adapter '${name}' has already been loaded.`);
          if (path.startsWith('/') && !existsSync(join(path, 'adapter_config.json')))
            throw new Refused(404, `No adapter found for ${path}`);
          adapters.set(name, path);
          return { json: `Success: LoRA adapter '${name}' added successfully.` };
        },
      },
      {
        method: 'POST',
        path: /^\/v1\/unload_lora_adapter$/,
        answer({ json }) {
          const { lora_name: name } = json(Unload);
          if (!adapters.delete(name)) throw new Refused(404, `The lora adapter '${name}' cannot be found.`);
          return { json: `Success: LoRA adapter '${name}' removed successfully.` };
        },
      },
    ],
  });
  return { ...standIn, adapters };
}
