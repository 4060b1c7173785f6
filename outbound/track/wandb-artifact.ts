/**
 * An artifact of W&B: created, its files uploaded by signed addresses, committed. Its identity is its digest, so that a
 * repeated call finds the committed one, or finishes the one that was begun.
 */
import { createHash } from 'node:crypto';
import { badConfig } from '../../core/contract/failures.ts';
import { callHttp } from '../../core/text/http.ts';
import {
  COMMIT_ARTIFACT,
  CREATE_ARTIFACT,
  CREATE_FILES,
  CREATE_MANIFEST,
  wandbGraphql,
  type WandbApi,
} from './wandb-graphql.ts';

interface ArtifactFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

export interface WandbArtifact {
  readonly entity: string;
  readonly project: string;
  /** The run that made it; null: a person did. */
  readonly runId: string | null;
  readonly name: string;
  readonly type: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly aliases: readonly string[];
  readonly files: readonly ArtifactFile[];
  /** Region of W&B Inference; null: W&B's default. */
  readonly storageRegion: string | null;
}

const DIGEST_HEADER = 'wandb-artifact-manifest-v1\n';
/** A larger file needs an upload in parts. */
const MAX_FILE_BYTES = 2 * 1024 ** 3;

interface Upload {
  readonly uploadUrl?: string | null;
  readonly uploadHeaders?: readonly string[] | null;
}

/** Its id. */
export async function logArtifact(api: WandbApi, artifact: WandbArtifact): Promise<string> {
  const files = artifact.files.map((file) => ({ ...file, md5: md5(file.bytes).digest('base64') }));
  const tooLarge = files.find(({ bytes }) => bytes.byteLength > MAX_FILE_BYTES);
  if (tooLarge !== undefined)
    throw badConfig(`a file of an artifact must have at most 2 GiB, ${tooLarge.path} has more`);
  const { id, state, base } = await create(api, artifact, digestOf(files));
  if (state === 'COMMITTED') return id;
  const draft = await createManifest(api, artifact, { id, base, digest: '', includeUpload: false });
  const births = await uploadFiles(api, files, { artifactID: id, artifactManifestID: draft.id });
  const manifest = encodeManifest(artifact, files, births);
  const digest = md5(manifest).digest('base64');
  const { file } = await createManifest(api, artifact, { id, base, digest, includeUpload: true });
  await put(api, file, manifest);
  await wandbGraphql(api, COMMIT_ARTIFACT, { artifactID: id });
  return id;
}

interface HashedFile extends ArtifactFile {
  readonly md5: string;
}

interface Created {
  readonly id: string;
  readonly state: string;
  readonly artifactSequence?: { readonly latestArtifact?: { readonly id: string } | null } | null;
}

async function create(
  api: WandbApi,
  { entity, project, runId, name, type, metadata, aliases, storageRegion }: WandbArtifact,
  digest: string,
): Promise<{ id: string; state: string; base: string | null }> {
  const sequence = md5(`${entity}/${project}/${name}`).digest('hex');
  const answer = await wandbGraphql<{ createArtifact: { artifact: Created } }>(api, CREATE_ARTIFACT, {
    input: {
      entityName: entity,
      projectName: project,
      runName: runId,
      artifactTypeName: type,
      artifactCollectionName: name,
      digest,
      digestAlgorithm: 'MANIFEST_MD5',
      aliases: aliases.map((alias) => ({ artifactCollectionName: name, alias })),
      metadata: JSON.stringify(metadata),
      enableDigestDeduplication: true,
      clientID: md5(`${sequence}/${digest}`).digest('hex'),
      sequenceClientID: sequence,
      ...(storageRegion === null ? {} : { storageRegion }),
    },
  });
  const { id, state, artifactSequence } = answer.createArtifact.artifact;
  return { id, state, base: artifactSequence?.latestArtifact?.id ?? null };
}

async function createManifest(
  api: WandbApi,
  { entity, project, runId }: WandbArtifact,
  { id, base, digest, includeUpload }: { id: string; base: string | null; digest: string; includeUpload: boolean },
): Promise<{ id: string; file: Upload }> {
  const answer = await wandbGraphql<{
    createArtifactManifest: { artifactManifest: { id: string; file: Upload } };
  }>(api, CREATE_MANIFEST, {
    artifactID: id,
    baseArtifactID: base,
    name: 'wandb_manifest.json',
    digest,
    entityName: entity,
    projectName: project,
    runName: runId ?? '',
    includeUpload,
  });
  return answer.createArtifactManifest.artifactManifest;
}

/** Uploads what the server does not have. Returns the artifact in which each file was born. */
async function uploadFiles(
  api: WandbApi,
  files: readonly HashedFile[],
  ids: { artifactID: string; artifactManifestID: string },
): Promise<Map<string, string>> {
  const answer = await wandbGraphql<{
    createArtifactFiles: { files: { edges: { node: Upload & { artifact: { id: string } } }[] } };
  }>(api, CREATE_FILES, {
    input: {
      artifactFiles: files.map((file) => ({ ...ids, name: file.path, md5: file.md5 })),
      storageLayout: 'V2',
    },
  });
  const births = new Map<string, string>();
  // The answers are in the order of the files.
  for (const [index, { node }] of answer.createArtifactFiles.files.edges.entries()) {
    const file = files[index]!;
    births.set(file.path, node.artifact.id);
    if (node.uploadUrl) await put(api, node, file.bytes);
  }
  return births;
}

/** To an address that is signed: the key stays here. */
async function put(
  { caller, baseUrl }: WandbApi,
  { uploadUrl, uploadHeaders }: Upload,
  body: Uint8Array,
): Promise<void> {
  const url = new URL(uploadUrl ?? '', baseUrl).href;
  const headers = Object.fromEntries((uploadHeaders ?? []).map((header) => splitHeader(header)));
  await callHttp({ ...caller, key: null, keyVariable: null }, { method: 'PUT', url, body, headers });
}

function splitHeader(header: string): [string, string] {
  const colon = header.indexOf(':');
  return [header.slice(0, colon).trim(), header.slice(colon + 1).trim()];
}

function encodeManifest(
  { storageRegion }: WandbArtifact,
  files: readonly HashedFile[],
  births: ReadonlyMap<string, string>,
): Uint8Array {
  const contents = files.map(({ path, md5: digest, bytes }) => [
    path,
    { digest, birthArtifactID: births.get(path), size: bytes.byteLength, skip_cache: false },
  ]);
  return new TextEncoder().encode(
    JSON.stringify({
      version: 1,
      storagePolicy: 'wandb-storage-policy-v1',
      storagePolicyConfig: { storageLayout: 'V2', ...(storageRegion === null ? {} : { storageRegion }) },
      contents: Object.fromEntries(contents),
    }),
  );
}

function digestOf(files: readonly HashedFile[]): string {
  const hash = md5(DIGEST_HEADER);
  for (const { path, md5: digest } of files.toSorted((a, b) => (a.path < b.path ? -1 : 1)))
    hash.update(`${path}:${digest}\n`);
  return hash.digest('hex');
}

/** W&B names contents by MD5; nothing is protected by it. */
function md5(data: string | Uint8Array): ReturnType<typeof createHash> {
  return createHash('md5').update(data);
}
