/** Ollama 0.34, from docs/api.md: blobs by their hash, and models made of them. It reads one field of a GGUF file. */
import { createHash } from 'node:crypto';
import { z } from 'zod';

import { Refused, startStandIn, type StandIn, type StandInOptions } from '../stand-in.ts';

const Create = z.strictObject({
  model: z.string().min(1),
  files: z.record(z.string().endsWith('.gguf'), z.string().regex(/^sha256:[0-9a-f]{64}$/)),
  stream: z.literal(false),
});
const Show = z.strictObject({ model: z.string() });

export interface OllamaStandIn extends StandIn {
  readonly blobs: Map<string, Buffer>;
  /** Digest by name. */
  readonly models: Map<string, string>;
  /** Bytes that were uploaded, again or not. */
  uploaded: number;
}

export async function startOllama(options: Omit<StandInOptions, 'routes' | 'key'>): Promise<OllamaStandIn> {
  const blobs = new Map<string, Buffer>();
  const models = new Map<string, string>();
  const counts = { uploaded: 0 };
  const standIn = await startStandIn({
    ...options,
    key: '',
    routes: [
      {
        method: 'HEAD',
        path: /^\/api\/blobs\/(sha256:[0-9a-f]{64})$/,
        isOpen: true,
        answer: ({ parts: [digest = ''] }) => ({ status: blobs.has(digest) ? 200 : 404 }),
      },
      {
        method: 'POST',
        path: /^\/api\/blobs\/(sha256:[0-9a-f]{64})$/,
        isOpen: true,
        answer({ parts: [digest = ''], body }) {
          counts.uploaded += body.length;
          if (`sha256:${createHash('sha256').update(body).digest('hex')}` !== digest)
            throw new Refused(400, 'digest mismatch');
          blobs.set(digest, body);
          return { status: 201 };
        },
      },
      {
        method: 'POST',
        path: /^\/api\/create$/,
        isOpen: true,
        answer({ json }) {
          const { model, files } = json(Create);
          const [digest = ''] = Object.values(files);
          if (!blobs.has(digest)) throw new Refused(400, 'blob not found');
          models.set(model, digest);
          return { json: { status: 'success' } };
        },
      },
      {
        method: 'POST',
        path: /^\/api\/show$/,
        isOpen: true,
        answer({ json }) {
          const { model } = json(Show);
          const file = blobs.get(models.get(model) ?? '');
          if (file === undefined) throw new Refused(404, `model '${model}' not found`);
          const adapter = /adapter ([0-9a-f]{64})/.exec(file.toString())?.[1];
          return { json: { model_info: { 'general.architecture': 'qwen2', 'temper.adapter_sha256': adapter } } };
        },
      },
    ],
  });
  return {
    ...standIn,
    blobs,
    models,
    get uploaded() {
      return counts.uploaded;
    },
  };
}
