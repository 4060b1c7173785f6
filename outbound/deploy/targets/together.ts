/**
 * Together AI: it fetches the adapter from a repository of the Hugging Face hub, or from an archive in a bucket, and serves
 * it on a dedicated endpoint of its base model. The interface has no key for idempotence: a job is found by its
 * description, which names the deployment.
 */
import type { DeployOptions } from '../../../core/contract/deploy.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { presignObject } from '../../../store/bytes/s3-client.ts';
import type { Made, RecordedDeployment } from '../../../store/records/production/deployments.ts';
import { callHttp, requireKey } from '../../../core/text/http.ts';
import { modelName } from './names.ts';
import type { DeployTarget, DeployStage, StageContext, StageOutcome } from './target.ts';
import { HUB_STAGES } from './huggingface.ts';
import { serviceCaller, SERVICES, serviceUrl } from './services.ts';
import { gzipSync } from 'node:zlib';

/** Together asks for 100 minutes at least. */
const ADDRESS_SECONDS = 4 * 3600;

interface Job {
  job_id: string;
  status: 'Queued' | 'Running' | 'Complete' | 'Failed';
  status_updates?: { message?: string }[];
  args: { modelName?: string; description?: string };
}

const optionsOf = ({ options }: Pick<RecordedDeployment, 'options'>) => options as DeployOptions<'together'>;

const UPLOAD: DeployStage = { name: 'upload', run: upload };
const REGISTER: DeployStage = { name: 'register', run: register };
const WAIT: DeployStage = { name: 'wait', run: waitForJob };
const ATTACH: DeployStage = { name: 'attach', run: attach };

export const togetherTarget: DeployTarget = {
  name: 'together',
  stages(deployment) {
    const { repo, endpoint } = optionsOf(deployment);
    const sources = repo === undefined ? [UPLOAD] : HUB_STAGES;
    return [...sources, REGISTER, WAIT, ...(endpoint === undefined ? [] : [ATTACH])];
  },
  address(_, made, env) {
    const model = made['attach']?.['model'];
    return typeof model === 'string'
      ? { baseUrl: serviceUrl('together', env), model, keyVariable: SERVICES.together.keyVariable }
      : null;
  },
};

const archiveKey = ({ deployment }: StageContext): string => `${deployment.run}.${deployment.id}.tar.gz`;

async function upload(context: StageContext): Promise<{ made: Made }> {
  const { bucket } = optionsOf(context.deployment);
  const store = await openStore(bucket!);
  const files = await context.files();
  const packed = archive(await Promise.all(files.map(async ({ path, read }) => ({ path, bytes: await read() }))));
  await store.publish(archiveKey(context), packed);
  return { made: { archive: `${bucket}/${archiveKey(context)}`, bytes: packed.byteLength } };
}

async function register(context: StageContext): Promise<{ made: Made }> {
  const { deployment, env } = context;
  const caller = serviceCaller('together', context);
  const description = `${deployment.policy}, adapter ${deployment.adapter.sha256}, deployment ${deployment.id}`;
  const { json: jobs } = await callHttp(caller, { url: `${serviceUrl('together', env)}/jobs` });
  const earlier = (jobs as { data: Job[] }).data.find((job) => job.args.description === description);
  if (earlier !== undefined) return { made: { job: earlier.job_id, model: earlier.args.modelName ?? null } };
  const { modelName: name = modelName(deployment.checkpoint, deployment.policy) } = optionsOf(deployment);
  const source = await sourceOf(context);
  const json = {
    model_name: name,
    model_type: 'adapter',
    description,
    ...source,
    ...(deployment.baseModel === null ? {} : { base_model: deployment.baseModel }),
  };
  const { json: answer } = await callHttp(caller, {
    method: 'POST',
    url: `${serviceUrl('together', env)}/models`,
    json,
  });
  const { job_id: job, model_name: model } = (answer as { data: { job_id: string; model_name: string } }).data;
  return { made: { job, model } };
}

/** The address of an archive is a key, and the hub's key goes with the repository: neither is recorded. */
async function sourceOf(context: StageContext): Promise<object> {
  const { repo, bucket } = optionsOf(context.deployment);
  if (repo === undefined) return { model_source: await presignObject(bucket!, archiveKey(context), ADDRESS_SECONDS) };
  return { model_source: repo, hf_token: requireKey(context.env, SERVICES.huggingface.keyVariable, 'Together') };
}

async function waitForJob(context: StageContext): Promise<StageOutcome> {
  const { job } = context.made['register']!;
  const { json } = await callHttp(serviceCaller('together', context), {
    url: `${serviceUrl('together', context.env)}/jobs/${String(job)}`,
  });
  const { status, status_updates: updates = [], args } = json as Job;
  if (status === 'Complete') return { made: { model: args.modelName ?? context.made['register']!['model'] ?? null } };
  if (status !== 'Failed') return { waitingFor: `Together's job ${String(job)} is ${status.toLowerCase()}` };
  const said = updates.at(-1)?.message ?? 'without a reason';
  throw new TemperError(
    'DeploymentFailed',
    `Together's job ${String(job)} failed (${said}); correct that, and deploy with --again`,
  );
}

async function attach(context: StageContext): Promise<{ made: Made }> {
  const caller = serviceCaller('together', context);
  const { endpoint } = optionsOf(context.deployment);
  const url = `${serviceUrl('together', context.env)}/endpoints/${endpoint}`;
  const { name } = (await callHttp(caller, { url })).json as { name: string };
  const model = `${name}:${String(context.made['wait']!['model'])}`;
  const { data = [] } = (await callHttp(caller, { url: `${url}/adapters` })).json as { data?: { model_id?: string }[] };
  if (!data.some((each) => each.model_id === model))
    await callHttp(caller, { method: 'POST', url: `${url}/adapters`, json: { model_id: model } });
  return { made: { endpoint: endpoint!, model } };
}

const BLOCK = 512;
/** Offsets of the fields of a header, in the format `ustar` of POSIX. */
const FIELDS = { name: 0, mode: 100, uid: 108, gid: 116, size: 124, mtime: 136, checksum: 148, type: 156, magic: 257 };

interface ArchiveFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** A `.tar.gz` with files at its root: the same files make the same bytes. */
function archive(files: readonly ArchiveFile[]): Uint8Array {
  const blocks = files.flatMap(({ path, bytes }) => [header(path, bytes.byteLength), padded(bytes)]);
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level: 1 });
}

function header(path: string, bytes: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const put = (text: string, at: number): void => void block.write(text, at, 'latin1');
  put(path, FIELDS.name);
  put(octal(0o644, 7), FIELDS.mode);
  put(octal(0, 7), FIELDS.uid);
  put(octal(0, 7), FIELDS.gid);
  put(octal(bytes, 11), FIELDS.size);
  put(octal(0, 11), FIELDS.mtime);
  put('0', FIELDS.type);
  put('ustar\u000000', FIELDS.magic);
  // The checksum counts its own field as spaces.
  put(' '.repeat(8), FIELDS.checksum);
  put(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    FIELDS.checksum,
  );
  return block;
}

const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');

function padded(bytes: Uint8Array): Buffer {
  const block = Buffer.alloc(Math.ceil(bytes.byteLength / BLOCK) * BLOCK);
  block.set(bytes);
  return block;
}
