/**
 * A repository of the Hugging Face hub: one commit for a checkpoint, and a tag that keeps its place. The library uploads;
 * it speaks the hub's storage of large files.
 */
import { createHash } from 'node:crypto';

import type { uploadFiles } from '@huggingface/hub';

import type { DeployOptions } from '../../../core/contract/deploy.ts';
import { badConfig, TemperError } from '../../../core/contract/failures.ts';
import { readBoundedText } from '../../../core/text/read-bounded.ts';
import type { Made, RecordedDeployment } from '../../../store/records/production/deployments.ts';
import { PEFT_WEIGHTS_FILE } from '../../../store/records/runs/peft-adapter.ts';
import { callHttp, explainRefusal, explainSilence, type HttpCaller } from '../../../core/text/http.ts';
import { CARD, inMemory } from './files.ts';
import { stepName } from './names.ts';
import { serviceCaller, serviceUrl } from './services.ts';
import type { DeployFile, DeployTarget, DeployStage, StageContext } from './target.ts';

/** Refusals of a commit that another one came before. */
const OUTDATED = [409, 412];
/** Commits that are searched for one of this deployment. */
const SEARCHED = 1000;
const LICENSE = /^[\w.+-]{1,60}$/;

interface RepoInfo {
  private: boolean;
  sha: string;
}
interface PathInfo {
  path: string;
  oid: string;
  lfs?: { oid: string };
}

type HubContext = Omit<StageContext, 'deployment'> & { readonly deployment: Deployed };
type Deployed = Pick<RecordedDeployment, 'id' | 'options' | 'policy' | 'checkpoint' | 'baseModel'>;

const repoOf = ({ options }: Pick<Deployed, 'options'>): string =>
  (options as DeployOptions<'huggingface'> | DeployOptions<'together'>).repo!;
const apiOf = ({ env, deployment }: HubContext): string =>
  `${serviceUrl('huggingface', env)}/api/models/${repoOf(deployment)}`;

/** Together fetches adapters from there, too. */
export const HUB_STAGES: readonly DeployStage[] = [
  { name: 'repository', run: createRepository },
  { name: 'upload', run: upload },
  { name: 'tag', run: tag },
];

export const huggingFaceTarget: DeployTarget = {
  name: 'huggingface',
  stages: () => HUB_STAGES,
  address: () => null,
  verify,
};

/** A repository that exists is taken as it is, unless everybody could read what was meant to be private. */
async function createRepository(context: HubContext): Promise<{ made: Made }> {
  const caller = serviceCaller('huggingface', context);
  const repo = repoOf(context.deployment);
  const [organization, name] = repo.split('/');
  const isPublic = context.deployment.options['public'] === true;
  const visibility = isPublic ? 'public' : 'private';
  const json = { type: 'model', organization, name, visibility };
  await callHttp(caller, {
    method: 'POST',
    url: `${serviceUrl('huggingface', context.env)}/api/repos/create`,
    json,
    expected: [409],
  });
  const { private: isPrivate } = await readRepo(context);
  if (!isPrivate && !isPublic)
    throw badConfig(
      `the repository ${repo} must be private, but everybody can read it; pass --public, or name another repository`,
    );
  const license = await readLicense(context);
  return { made: { repo, url: `${serviceUrl('huggingface', context.env)}/${repo}`, private: isPrivate, license } };
}

/** License of the base model: null if it is not of the hub, or names none. */
async function readLicense(context: HubContext): Promise<string | null> {
  const { baseModel } = context.deployment;
  if (baseModel === null) return null;
  const url = `${serviceUrl('huggingface', context.env)}/api/models/${baseModel}`;
  const { json } = await callHttp(serviceCaller('huggingface', context), { url, expected: [401, 403, 404] });
  const license = (json as { cardData?: { license?: unknown } } | undefined)?.cardData?.license;
  return typeof license === 'string' && LICENSE.test(license) ? license : null;
}

/** The card begins with metadata, which gets the license, too. */
async function filesOf(context: HubContext): Promise<DeployFile[]> {
  const { license } = context.made['repository']!;
  const files = await context.files();
  if (typeof license !== 'string') return [...files];
  return Promise.all(files.map((file) => withLicense(file, license)));
}

async function withLicense(file: DeployFile, license: string): Promise<DeployFile> {
  if (file.path !== CARD) return file;
  const card = new TextDecoder().decode(await file.read());
  return inMemory(CARD, new TextEncoder().encode(card.replace('---\n', `---\nlicense: ${JSON.stringify(license)}\n`)));
}

async function readRepo(context: HubContext): Promise<RepoInfo> {
  return (await callHttp(serviceCaller('huggingface', context), { url: apiOf(context) })).json as RepoInfo;
}

/** The commit's title names the deployment: it is found again after an answer that was lost. */
async function upload(context: HubContext): Promise<{ made: Made }> {
  const { id, policy } = context.deployment;
  const title = `${policy} (deployment ${id})`;
  const { json } = await callHttp(serviceCaller('huggingface', context), {
    url: `${apiOf(context)}/commits/main?limit=${SEARCHED}`,
  });
  const earlier = (json as { id: string; title: string }[]).find((commit) => commit.title === title);
  return { made: { commit: earlier?.id ?? (await commitFiles(context, title)) } };
}

async function commitFiles(context: HubContext, title: string): Promise<string> {
  const hub = await importHub();
  const caller = serviceCaller('huggingface', context);
  // The hub takes the first of two commits after the same one.
  const parentCommit = (await readRepo(context)).sha;
  const files = await Promise.all((await filesOf(context)).map(toBlob));
  const result = await hub.uploadFiles({
    repo: { type: 'model', name: repoOf(context.deployment) },
    files,
    commitTitle: title,
    parentCommit,
    hubUrl: serviceUrl('huggingface', context.env),
    accessToken: caller.key!,
    abortSignal: context.signal,
    fetch: refusing(caller),
  });
  return result!.commit.oid;
}

async function toBlob(file: DeployFile): Promise<{ path: string; content: Blob }> {
  return { path: file.path, content: new Blob([await file.read()]) };
}

/** Refusals and outages become this project's failures; the library's own errors name addresses with their keys. */
function refusing(caller: HttpCaller): typeof fetch {
  return async (input, init) => {
    const request = {
      method: (init?.method ?? 'GET') as 'GET',
      url: input instanceof Request ? input.url : String(input),
    };
    const response = await caller.fetch(input, init).catch((cause: unknown) => {
      if (caller.signal.aborted) throw caller.signal.reason;
      throw explainSilence(caller, request, cause);
    });
    if (response.ok) return response;
    const { status, headers } = response;
    const text = await readBoundedText(response);
    throw explainRefusal(caller, request, { status: OUTDATED.includes(status) ? 503 : status, text, headers });
  };
}

async function tag(context: HubContext): Promise<{ made: Made }> {
  const caller = serviceCaller('huggingface', context);
  const name = stepName(context.deployment.checkpoint);
  const commit = String(context.made['upload']!['commit']);
  const { json } = await callHttp(caller, { url: `${apiOf(context)}/refs` });
  const known = (json as { tags: { name: string; targetCommit: string }[] }).tags.find((each) => each.name === name);
  if (known === undefined)
    await callHttp(caller, {
      method: 'POST',
      url: `${apiOf(context)}/tag/${commit}`,
      json: { tag: name, message: context.deployment.policy },
      expected: [409],
    });
  else if (known.targetCommit !== commit) await requireSameAdapter(context, name);
  return { made: { revision: name } };
}

/** A repeated deployment of a step leaves the tag where it is. */
async function requireSameAdapter(context: HubContext, revision: string): Promise<void> {
  const files = (await context.files()).filter(({ path }) => path === PEFT_WEIGHTS_FILE);
  if ((await findDifference(context, files, revision)) === null) return;
  const rule = `the tag ${revision} of ${repoOf(context.deployment)} marks another adapter`;
  throw new TemperError('DeploymentFailed', `${rule}; name another repository, or delete the tag there`);
}

async function verify(context: HubContext): Promise<string | null> {
  return findDifference(context, await filesOf(context), String(context.made['upload']!['commit']));
}

async function findDifference(
  context: HubContext,
  files: readonly DeployFile[],
  revision: string,
): Promise<string | null> {
  const url = `${apiOf(context)}/paths-info/${revision}`;
  const json = { paths: files.map(({ path }) => path), expand: false };
  const there = (await callHttp(serviceCaller('huggingface', context), { method: 'POST', url, json }))
    .json as PathInfo[];
  for (const file of files) {
    const found = there.find(({ path }) => path === file.path);
    if (found === undefined) return `${file.path} is missing`;
    const isSame = found.lfs ? found.lfs.oid === file.sha256 : found.oid === gitHash(await file.read());
    if (!isSame) return `${file.path} has other bytes`;
  }
  return null;
}

/** Git's name of a file's bytes, which the hub has for small files. */
function gitHash(bytes: Uint8Array): string {
  return createHash('sha1').update(`blob ${bytes.byteLength}\0`).update(bytes).digest('hex');
}

async function importHub(): Promise<{ uploadFiles: typeof uploadFiles }> {
  try {
    return await import('@huggingface/hub');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw badConfig(
      'uploading to the Hugging Face hub needs the package @huggingface/hub, which is not installed; run npm install @huggingface/hub',
      { cause },
    );
  }
}
