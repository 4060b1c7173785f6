/**
 * W&B's server for runs and artifacts, made from the requests of its client 0.31 (wandb-core: gql_gen.go, filestream,
 * artifacts/saver.go). Rows stand at their offsets: a gap is refused, and a row is written over.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  Refused,
  startStandIn,
  type StandIn,
  type StandInAnswer,
  type StandInOptions,
  type StandInRequest,
} from '../stand-in.ts';

export interface WandbRun {
  config: Record<string, { value: unknown }>;
  displayName: string;
  groupName: string;
  tags: string[];
  history: Record<string, number>[];
  summary: Record<string, number>;
  exitcode: number | null;
  beats: number;
}

export interface LoggedArtifact {
  id: string;
  name: string;
  type: string;
  digest: string;
  state: 'PENDING' | 'COMMITTED';
  aliases: string[];
  metadata: unknown;
  files: Map<string, Buffer>;
}

export interface WandbStandIn extends StandIn {
  readonly key: string;
  readonly runs: Map<string, WandbRun>;
  readonly artifacts: LoggedArtifact[];
}

const GraphqlBody = z.strictObject({ query: z.string(), variables: z.record(z.string(), z.unknown()) });
const Upsert = z.strictObject({
  name: z.string().regex(/^[^/\\#?%:]{1,128}$/),
  displayName: z.string(),
  project: z.string(),
  entity: z.string().nullable(),
  groupName: z.string(),
  jobType: z.string(),
  tags: z.array(z.string()),
  config: z.string(),
});
const Chunk = z.strictObject({ offset: z.int().min(0), content: z.array(z.string()) });
const Stream = z.strictObject({
  files: z.strictObject({ 'wandb-history.jsonl': Chunk.optional(), 'wandb-summary.json': Chunk.optional() }),
  complete: z.literal(true).optional(),
  exitcode: z.int().optional(),
});
const CreateInput = z.strictObject({
  input: z.strictObject({
    entityName: z.string(),
    projectName: z.string(),
    runName: z.string().nullable(),
    artifactTypeName: z.string(),
    artifactCollectionName: z.string().regex(/^[\w.-]+$/),
    digest: z.string().regex(/^[0-9a-f]{32}$/),
    digestAlgorithm: z.literal('MANIFEST_MD5'),
    aliases: z.array(z.strictObject({ artifactCollectionName: z.string(), alias: z.string() })),
    metadata: z.string(),
    enableDigestDeduplication: z.literal(true),
    clientID: z.string(),
    sequenceClientID: z.string(),
    storageRegion: z.string().optional(),
  }),
});
const FilesInput = z.strictObject({
  input: z.strictObject({
    artifactFiles: z.array(
      z.strictObject({ artifactID: z.string(), artifactManifestID: z.string(), name: z.string(), md5: z.string() }),
    ),
    storageLayout: z.literal('V2'),
  }),
});
const ManifestInput = z.strictObject({
  artifactID: z.string(),
  baseArtifactID: z.string().nullable(),
  name: z.literal('wandb_manifest.json'),
  digest: z.string(),
  entityName: z.string(),
  projectName: z.string(),
  runName: z.string(),
  includeUpload: z.boolean(),
});

export async function startWandb(options: Pick<StandInOptions, 'fault' | 'hold'> = {}): Promise<WandbStandIn> {
  const key = 'wandb-canary-0123456789abcdef0123456789abcdef';
  const runs = new Map<string, WandbRun>();
  const artifacts: LoggedArtifact[] = [];
  const server = await startStandIn({
    ...options,
    key,
    authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}`,
    routes: [
      { method: 'POST', path: /^\/graphql$/, answer: (request) => graphql(request, runs, artifacts) },
      {
        method: 'POST',
        path: /^\/files\/team\/([^/]+)\/([^/]+)\/file_stream$/,
        answer: (request) => stream(request, runs),
      },
      {
        method: 'PUT',
        path: /^\/upload\/([^/]+)\/(.+)$/,
        isOpen: true,
        answer: (request) => upload(request, artifacts),
      },
    ],
  });
  return { ...server, key, runs, artifacts };
}

function graphql(request: StandInRequest, runs: Map<string, WandbRun>, artifacts: LoggedArtifact[]): StandInAnswer {
  const { query, variables } = request.json(GraphqlBody);
  const named = /^\s*(?:mutation|query) (\w+)/.exec(query)?.[1];
  if (named === 'UpsertBucket') return upsert(Upsert.parse(variables), runs);
  if (named === 'CreateArtifact') return createArtifact(CreateInput.parse(variables), artifacts);
  if (named === 'CreateArtifactManifest') return createManifest(ManifestInput.parse(variables));
  if (named === 'CreateArtifactFiles') return createFiles(FilesInput.parse(variables));
  if (named === 'CommitArtifact') return commit(z.strictObject({ artifactID: z.string() }).parse(variables), artifacts);
  throw new Refused(400, `unknown operation ${named}`);
}

function upsert({ name, config, project, ...input }: z.infer<typeof Upsert>, runs: Map<string, WandbRun>) {
  const known = runs.get(name);
  runs.set(name, {
    history: [],
    summary: {},
    beats: 0,
    ...known,
    exitcode: null,
    displayName: input.displayName,
    groupName: input.groupName,
    tags: input.tags,
    config: JSON.parse(config) as WandbRun['config'],
  });
  const bucket = { id: `Run:${name}`, name, project: { name: project, entity: { name: input.entity ?? 'team' } } };
  return { json: { data: { upsertBucket: { bucket, inserted: known === undefined } } } };
}

function stream(request: StandInRequest, runs: Map<string, WandbRun>): StandInAnswer {
  const run = runs.get(request.parts[1] ?? '');
  if (run === undefined) throw new Refused(404, 'run not found');
  const { files, complete, exitcode = null } = request.json(Stream);
  const { 'wandb-history.jsonl': history, 'wandb-summary.json': summary } = files;
  if (history === undefined && complete === undefined) run.beats += 1;
  if (history !== undefined) writeHistory(run, history);
  if (summary !== undefined) run.summary = JSON.parse(summary.content[0] ?? '{}') as Record<string, number>;
  run.exitcode = complete === undefined ? null : exitcode;
  return { json: {} };
}

function writeHistory({ history }: WandbRun, { offset, content }: z.infer<typeof Chunk>): void {
  if (offset > history.length) throw new Refused(400, 'history has a gap');
  for (const [index, line] of content.entries()) history[offset + index] = JSON.parse(line) as Record<string, number>;
}

function createArtifact({ input }: z.infer<typeof CreateInput>, artifacts: LoggedArtifact[]): StandInAnswer {
  const { artifactCollectionName: name, artifactTypeName: type, digest } = input;
  const aliases = input.aliases.map(({ alias }) => alias);
  const same = artifacts.find((each) => each.name === name && each.digest === digest);
  const latest = artifacts.findLast((each) => each.name === name && each.state === 'COMMITTED');
  const made = same ?? {
    id: `artifact-${artifacts.length}`,
    name,
    type,
    digest,
    state: 'PENDING' as const,
    aliases: [],
    metadata: JSON.parse(input.metadata) as unknown,
    files: new Map<string, Buffer>(),
  };
  if (same === undefined) artifacts.push(made);
  // An alias names one version of a collection.
  for (const other of artifacts) other.aliases = other.aliases.filter((alias) => !aliases.includes(alias));
  made.aliases = [...made.aliases, ...aliases];
  const artifactSequence = { latestArtifact: latest === undefined ? null : { id: latest.id } };
  return { json: { data: { createArtifact: { artifact: { id: made.id, state: made.state, artifactSequence } } } } };
}

function createManifest({ artifactID, includeUpload }: z.infer<typeof ManifestInput>): StandInAnswer {
  const file = includeUpload ? { uploadUrl: `/upload/${artifactID}/manifest`, uploadHeaders: [] } : {};
  const artifactManifest = { id: `manifest-${artifactID}`, file };
  return { json: { data: { createArtifactManifest: { artifactManifest } } } };
}

function createFiles({ input }: z.infer<typeof FilesInput>): StandInAnswer {
  const edges = input.artifactFiles.map(({ artifactID, name, md5 }) => ({
    node: {
      name,
      uploadUrl: `/upload/${artifactID}/${name}`,
      uploadHeaders: [`Content-MD5:${md5}`, 'Content-Type:application/octet-stream'],
      artifact: { id: artifactID },
    },
  }));
  return { json: { data: { createArtifactFiles: { files: { edges } } } } };
}

function upload({ parts, body, headers }: StandInRequest, artifacts: LoggedArtifact[]): StandInAnswer {
  const [id, name = ''] = parts;
  const expected = headers['content-md5'];
  if (expected !== undefined && createHash('md5').update(body).digest('base64') !== expected)
    throw new Refused(400, 'wrong MD5');
  artifacts.find((each) => each.id === id)?.files.set(name, body);
  return { json: {} };
}

function commit({ artifactID }: { artifactID: string }, artifacts: LoggedArtifact[]): StandInAnswer {
  const artifact = artifacts.find((each) => each.id === artifactID);
  const manifest = artifact?.files.get('manifest');
  if (artifact === undefined || manifest === undefined) throw new Refused(400, 'no manifest');
  const { contents } = JSON.parse(manifest.toString()) as { contents: Record<string, { size: number }> };
  for (const [path, { size }] of Object.entries(contents))
    if (artifact.files.get(path)?.byteLength !== size) throw new Refused(400, `${path} was not uploaded`);
  artifact.state = 'COMMITTED';
  return { json: { data: { commitArtifact: { artifact: { id: artifactID, digest: artifact.digest } } } } };
}
