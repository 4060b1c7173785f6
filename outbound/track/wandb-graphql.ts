/** Calls of W&B's GraphQL interface, as its client 0.31 (wandb-core) makes them. */
import { TemperError } from '../../core/contract/failures.ts';
import { withoutSlash } from '../../core/names/addresses.ts';
import { callHttp, requireKey, withoutSecrets, type HttpCaller, type HttpRequest } from '../../core/text/http.ts';

export interface WandbApi {
  readonly caller: HttpCaller;
  /** Without a slash at its end. */
  readonly baseUrl: string;
}

export const WANDB_CLOUD = 'https://api.wandb.ai';
export const WANDB_KEY_VARIABLE = 'WANDB_API_KEY';

/** At `baseUrl`, or where the environment says. */
export function openWandbApi(
  baseUrl: string | null,
  env: NodeJS.ProcessEnv,
  { fetch, signal }: Pick<HttpCaller, 'fetch' | 'signal'>,
): WandbApi {
  const system = 'Weights & Biases';
  const key = requireKey(env, WANDB_KEY_VARIABLE, system);
  const caller = { system, keyVariable: WANDB_KEY_VARIABLE, key, fetch, signal };
  return { caller, baseUrl: withoutSlash(baseUrl ?? (env['WANDB_BASE_URL'] || WANDB_CLOUD)) };
}

export const UPSERT_RUN = `mutation UpsertBucket($name: String, $project: String, $entity: String, $groupName: String, $displayName: String, $config: JSONString, $jobType: String, $tags: [String!]) {
  upsertBucket(input: { name: $name, modelName: $project, entityName: $entity, groupName: $groupName, displayName: $displayName, config: $config, jobType: $jobType, tags: $tags }) {
    bucket { id name project { name entity { name } } }
    inserted
  }
}`;

export const CREATE_ARTIFACT = `mutation CreateArtifact($input: CreateArtifactInput!) {
  createArtifact(input: $input) {
    artifact { id state artifactSequence { latestArtifact { id } } }
  }
}`;

export const CREATE_MANIFEST = `mutation CreateArtifactManifest($artifactID: ID!, $baseArtifactID: ID, $name: String!, $digest: String!, $entityName: String!, $projectName: String!, $runName: String!, $includeUpload: Boolean!) {
  createArtifactManifest(input: { artifactID: $artifactID, baseArtifactID: $baseArtifactID, name: $name, digest: $digest, entityName: $entityName, projectName: $projectName, runName: $runName, type: FULL }) {
    artifactManifest { id file { uploadUrl @include(if: $includeUpload) uploadHeaders @include(if: $includeUpload) } }
  }
}`;

export const CREATE_FILES = `mutation CreateArtifactFiles($input: CreateArtifactFilesInput!) {
  createArtifactFiles(input: $input) {
    files { edges { node { name uploadUrl uploadHeaders artifact { id } } } }
  }
}`;

export const COMMIT_ARTIFACT = `mutation CommitArtifact($artifactID: ID!) {
  commitArtifact(input: { artifactID: $artifactID }) { artifact { id digest } }
}`;

export const VIEWER = `query Viewer { viewer { entity username } }`;

export function basicKey({ key }: Pick<HttpCaller, 'key'>): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` };
}

export function graphqlRequest({ caller, baseUrl }: WandbApi, query: string, variables: object): HttpRequest {
  return { method: 'POST', url: `${baseUrl}/graphql`, json: { query, variables }, headers: basicKey(caller) };
}

/** GraphQL answers refusals with 200. */
export async function wandbGraphql<T>({ caller, baseUrl }: WandbApi, query: string, variables: object): Promise<T> {
  const { json } = await callHttp(caller, graphqlRequest({ caller, baseUrl }, query, variables));
  const { data, errors } = (json ?? {}) as { data?: T | null; errors?: { message?: string }[] };
  if (data && !errors?.length) return data;
  const said = withoutSecrets(errors?.[0]?.message ?? 'no data', [caller.key]);
  throw new TemperError(
    'TargetUnavailable',
    `${caller.system} refused ${/\b\w+ (\w+)/.exec(query)?.[1]} (${said}); check entity and project, and the rights of the key in ${caller.keyVariable}`,
  );
}
