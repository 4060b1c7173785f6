/**
 * Ollama, by its API (docs/api.md of 0.34): the merged model as one GGUF file, uploaded by its hash, and a model made of it.
 * Ollama takes no adapters from 0.34.1 on.
 */
import { createReadStream } from 'node:fs';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Readable } from 'node:stream';

import { withoutSlash } from '../../../core/names/addresses.ts';
import type { DeployOptions } from '../../../core/contract/deploy.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import type { Made, RecordedDeployment } from '../../../store/records/production/deployments.ts';
import { callHttp, type HttpCaller } from '../../../core/text/http.ts';
import { modelName } from './names.ts';
import type { DeployTarget, StageContext } from './target.ts';

/** A field of the file, by which Ollama tells what a model was made of. */
const ADAPTER_FIELD = 'temper.adapter_sha256';

const optionsOf = ({ options }: Pick<RecordedDeployment, 'options'>) => options as DeployOptions<'ollama'>;
const urlOf = (deployment: Pick<RecordedDeployment, 'options'>): string => withoutSlash(optionsOf(deployment).url);

export const ollamaTarget: DeployTarget = {
  name: 'ollama',
  stages: () => [{ name: 'create', run: create }],
  address(deployment, made) {
    const model = made['create']?.['model'];
    return typeof model === 'string' ? { baseUrl: `${urlOf(deployment)}/v1`, model, keyVariable: null } : null;
  },
};

function callerOf({ fetch, signal }: StageContext): HttpCaller {
  return { system: 'Ollama', keyVariable: null, key: null, fetch, signal };
}

/** One stage: the file is on the disk of this worker alone. It has the same bytes each time, and Ollama keeps them. */
async function create(context: StageContext): Promise<{ made: Made }> {
  const { deployment } = context;
  const { modelName: chosen, quantize } = optionsOf(deployment);
  const model = chosen ?? modelName(deployment.checkpoint, deployment.policy);
  const there = await adapterOf(context, model);
  if (there === deployment.adapter.sha256) return { made: { model } };
  if (there !== null && chosen === undefined)
    throw new TemperError(
      'DeploymentFailed',
      `Ollama has another model under the name ${model}; pass --model-name with another one for ${deployment.policy}`,
    );
  const folder = await mkdtemp(join(tmpdir(), 'temper-gguf-'));
  try {
    const { policy, chatTemplateSha256 } = deployment;
    const quantized = { quantize: quantize === 'none' ? null : quantize };
    const file = await context.writeGguf({ policy, chatTemplateSha256, folder, ...quantized, signal: context.signal });
    const digest = await upload(context, file);
    const json = { model, files: { 'model.gguf': digest }, stream: false };
    await callHttp(callerOf(context), { method: 'POST', url: `${urlOf(deployment)}/api/create`, json });
    return { made: { model, digest } };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Hash of the adapter in a model; empty if the model is not one of Temper's, null if there is none of that name. */
async function adapterOf(context: StageContext, model: string): Promise<string | null> {
  const url = `${urlOf(context.deployment)}/api/show`;
  const asked = { method: 'POST', url, json: { model }, expected: [404] } as const;
  const { status, json } = await callHttp(callerOf(context), asked);
  if (status === 404) return null;
  const info = (json as { model_info?: Record<string, unknown> } | undefined)?.model_info ?? {};
  const adapter = info[ADAPTER_FIELD];
  return typeof adapter === 'string' ? adapter : '';
}

async function upload(context: StageContext, file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  const digest = `sha256:${hash.digest('hex')}`;
  const url = `${urlOf(context.deployment)}/api/blobs/${digest}`;
  const caller = callerOf(context);
  if ((await callHttp(caller, { method: 'HEAD', url, expected: [404] })).status !== 404) return digest;
  const { size: bytes } = await stat(file);
  const stream = { bytes, open: () => Readable.toWeb(createReadStream(file)) as ReadableStream<Uint8Array> };
  await callHttp(caller, { method: 'POST', url, stream });
  return digest;
}
