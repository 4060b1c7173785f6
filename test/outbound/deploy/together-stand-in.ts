/** Together AI, from its OpenAPI 2.0.0 (togethercomputer/openapi 090263a) and, for adapters of endpoints, together-ai 0.52.0. */
import { z } from 'zod';

import { Refused, startStandIn, type Route, type StandIn, type StandInOptions } from '../stand-in.ts';

const ModelUploadRequest = z.strictObject({
  model_name: z.string(),
  model_source: z.string(),
  model_type: z.enum(['model', 'adapter']).optional(),
  base_model: z.string().optional(),
  lora_model: z.string().optional(),
  hf_token: z.string().optional(),
  description: z.string().optional(),
});
type Upload = z.infer<typeof ModelUploadRequest>;

export const ENDPOINT = { id: 'endpoint-1a2b', name: 'me/qwen-1a2b' };

interface Job {
  readonly id: string;
  readonly upload: Upload;
  /** How often its status was asked for. */
  asked: number;
}

export interface TogetherStandIn extends StandIn {
  readonly jobs: readonly Job[];
  readonly adapters: readonly string[];
}

export interface TogetherOptions extends Pick<StandInOptions, 'key' | 'fault' | 'hold'> {
  /** Fetches what an upload names, as Together does. */
  readonly fetchSource?: (upload: Upload) => Promise<void>;
  /** Why jobs fail. */
  readonly failure?: string;
}

const STATUSES = ['Queued', 'Running', 'Complete'] as const;

export async function startTogether(options: TogetherOptions): Promise<TogetherStandIn> {
  const jobs: Job[] = [];
  const adapters: string[] = [];
  const at = '2026-11-27T10:00:00Z';
  const describe = ({ id, upload, asked }: Job) => {
    const status = options.failure ? 'Failed' : (STATUSES[asked] ?? 'Complete');
    const message = options.failure ?? `Job is ${status}`;
    const { description, model_name: name, model_source: source } = upload;
    return {
      type: 'adapter_upload',
      job_id: id,
      status,
      status_updates: [{ status, message, timestamp: at }],
      args: { description, modelName: `me/${name}`, modelSource: source.replace(/\?.*/, '') },
      created_at: at,
      updated_at: at,
    };
  };
  const adaptersPath = new RegExp(`^/v1/endpoints/${ENDPOINT.id}/adapters$`);
  const routes: Route[] = [
    {
      method: 'POST',
      path: /^\/v1\/models$/,
      async answer({ json }) {
        const upload = json(ModelUploadRequest);
        await options.fetchSource?.(upload);
        const id = `job-${jobs.length + 1}`;
        jobs.push({ id, upload, asked: 0 });
        const data = { job_id: id, model_name: `me/${upload.model_name}`, model_id: 'model-1', model_source: 'remote' };
        return { json: { data, message: 'Processing model weights. Job created.' } };
      },
    },
    { method: 'GET', path: /^\/v1\/jobs$/, answer: () => ({ json: { data: jobs.map(describe) } }) },
    {
      method: 'GET',
      path: /^\/v1\/jobs\/([\w-]+)$/,
      answer({ parts }) {
        const job = jobs.find(({ id }) => id === parts[0]);
        if (job === undefined) throw new Refused(404, 'no such job');
        const json = describe(job);
        job.asked += 1;
        return { json };
      },
    },
    {
      method: 'GET',
      path: new RegExp(`^/v1/endpoints/${ENDPOINT.id}$`),
      answer: () => ({ json: { object: 'endpoint', ...ENDPOINT } }),
    },
    {
      method: 'GET',
      path: adaptersPath,
      answer: () => ({ json: { object: 'list', data: adapters.map((model_id) => ({ model_id })) } }),
    },
    {
      method: 'POST',
      path: adaptersPath,
      answer({ json }) {
        const { model_id: model } = json(z.strictObject({ model_id: z.string() }));
        if (!model.startsWith(`${ENDPOINT.name}:`)) throw new Refused(400, 'the prefix must match the endpoint');
        adapters.push(model);
        return { json: { model_id: model } };
      },
    },
  ];
  return Object.assign(await startStandIn({ ...options, routes }), { jobs, adapters });
}
