/**
 * A running vLLM: its endpoints for adapters at run time (vLLM 0.32, `vllm/entrypoints/serve/lora`). The server reads the
 * adapter itself, from a folder that it shares with the worker, or from a repository of the hub.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join, posix } from 'node:path';

import { withoutSlash } from '../../../core/names/addresses.ts';
import type { DeployOptions } from '../../../core/contract/deploy.ts';
import { badConfig, TemperError } from '../../../core/contract/failures.ts';
import type { Made, RecordedDeployment } from '../../../store/records/production/deployments.ts';
import { callHttp, type HttpCaller } from '../../../core/text/http.ts';
import { modelName, stepName } from './names.ts';
import type { DeployTarget, DeployStage, StageContext } from './target.ts';

const KEY_VARIABLE = 'VLLM_API_KEY';
/** Folder of the worker that the server reads, too. */
const FOLDER_VARIABLE = 'TEMPER_VLLM_FOLDER';

interface ServedModel {
  id: string;
  /** The place that an adapter was loaded from. */
  root?: string;
  /** The base model of an adapter. */
  parent?: string | null;
}

const optionsOf = ({ options }: Pick<RecordedDeployment, 'options'>) => options as DeployOptions<'vllm'>;
const urlOf = (deployment: Pick<RecordedDeployment, 'options'>): string => withoutSlash(optionsOf(deployment).url);

const WRITE: DeployStage = { name: 'folder', run: writeFolder };
const LOAD: DeployStage = { name: 'load', run: load };
const UNLOAD: DeployStage = { name: 'unload', run: unloadOthers };

export const vllmTarget: DeployTarget = {
  name: 'vllm',
  stages: (deployment) => [
    ...(optionsOf(deployment).repo === undefined ? [WRITE] : []),
    LOAD,
    ...(optionsOf(deployment).replace ? [UNLOAD] : []),
  ],
  address(deployment, made, env) {
    const model = made['load']?.['model'];
    const keyVariable = env[KEY_VARIABLE] ? KEY_VARIABLE : null;
    return typeof model === 'string' ? { baseUrl: `${urlOf(deployment)}/v1`, model, keyVariable } : null;
  },
};

/** A server without `--api-key` takes any. */
function callerOf({ env, fetch, signal }: StageContext): HttpCaller {
  return { system: 'vLLM', keyVariable: KEY_VARIABLE, key: env[KEY_VARIABLE] || null, fetch, signal };
}

function nameOf({ checkpoint, policy, ...deployment }: RecordedDeployment): string {
  return optionsOf(deployment).modelName ?? modelName(checkpoint, policy);
}

/** The hash in its name makes the folder write-once: it is complete if it exists. */
async function writeFolder(context: StageContext): Promise<{ made: Made }> {
  const { deployment, env } = context;
  const own = env[FOLDER_VARIABLE];
  if (!own)
    throw badConfig(
      `vLLM needs a folder that it shares with the worker, in ${FOLDER_VARIABLE}, which is not set in the environment of the worker; export it where temper dev or temper worker starts, or pass --repo`,
    );
  const name = `${modelName(deployment.checkpoint, deployment.policy)}-${deployment.adapter.sha256.slice(0, 12)}`;
  const partial = join(own, `.${name}.${randomBytes(6).toString('hex')}`);
  try {
    await mkdir(partial, { recursive: true });
    for (const file of await context.files()) await writeFile(join(partial, file.path), await file.read());
    await rename(partial, join(own, name));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw refused(code ?? String(error), error);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return { made: { folder: posix.join(optionsOf(deployment).folder ?? own, name) } };
}

function refused(reason: string, cause: unknown): TemperError {
  return new TemperError(
    'TargetUnavailable',
    `the folder of ${FOLDER_VARIABLE} must be writable and have room, but refused (${reason}); Temper tries again`,
    { cause },
  );
}

async function listServed(context: StageContext): Promise<ServedModel[]> {
  const { json } = await callHttp(callerOf(context), { url: `${urlOf(context.deployment)}/v1/models` });
  return (json as { data?: ServedModel[] } | undefined)?.data ?? [];
}

async function load(context: StageContext): Promise<{ made: Made }> {
  const { deployment, made } = context;
  const { repo, modelName: chosen } = optionsOf(deployment);
  const name = nameOf(deployment);
  const path = repo ?? String(made['folder']!['folder']);
  const there = (await listServed(context)).find(({ id }) => id === name);
  // A repository may have changed under its name.
  if (there?.root === path && repo === undefined) return { made: { model: name } };
  if (there !== undefined && (chosen === undefined || !there.parent))
    throw new TemperError(
      'DeploymentFailed',
      `vLLM serves something else as ${name}; pass --model-name with another name for ${deployment.policy}`,
    );
  const json = { lora_name: name, lora_path: path, ...(there === undefined ? {} : { load_inplace: true }) };
  const url = `${urlOf(deployment)}/v1/load_lora_adapter`;
  const { status } = await callHttp(callerOf(context), { method: 'POST', url, json, expected: [404] });
  if (status === 404) throw cannotLoad(name, path);
  return { made: { model: name } };
}

function cannotLoad(name: string, path: string): TemperError {
  return new TemperError(
    'DeploymentFailed',
    `vLLM cannot load ${name}: it found no adapter at ${path}, or takes none; start it with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, and pass --folder if it sees the shared folder at another place`,
  );
}

/** Other checkpoints of the run, under the names that deployments give them. */
async function unloadOthers(context: StageContext): Promise<{ made: Made }> {
  const { deployment } = context;
  const own = nameOf(deployment);
  const tail = stepName(deployment.checkpoint);
  const run = modelName(deployment.checkpoint, deployment.policy).slice(0, -tail.length);
  const others = (await listServed(context)).filter(
    ({ id, parent }) => parent && id !== own && id.startsWith(run) && STEP.test(id.slice(run.length)),
  );
  for (const { id } of others) {
    const url = `${urlOf(deployment)}/v1/unload_lora_adapter`;
    await callHttp(callerOf(context), { method: 'POST', url, json: { lora_name: id }, expected: [404] });
  }
  return { made: { unloaded: others.length } };
}

const STEP = /^(branch\d+-)?step\d+$/;
