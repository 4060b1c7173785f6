/** The Hugging Face hub, from the types of @huggingface/hub 2.17.5 (`src/types/api`) and of huggingface_hub's `create_tag`. */
import { createHash } from 'node:crypto';
import { z } from 'zod';

import { Refused, startStandIn, type Route, type StandIn, type StandInOptions } from '../stand-in.ts';

const sha1 = (text: string | Buffer): string => createHash('sha1').update(text).digest('hex');
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const CreateRepo = z.strictObject({
  type: z.literal('model'),
  organization: z.string(),
  name: z.string(),
  visibility: z.enum(['private', 'public']),
});
const Preupload = z.strictObject({
  files: z.array(z.strictObject({ path: z.string(), size: z.int(), sample: z.string() })),
});
const LfsBatch = z.strictObject({
  operation: z.literal('upload'),
  transfers: z.array(z.string()),
  hash_algo: z.literal('sha_256'),
  ref: z.strictObject({ name: z.literal('main') }),
  objects: z.array(z.strictObject({ oid: z.string().length(64), size: z.int() })),
});
const CommitLine = z.discriminatedUnion('key', [
  z.strictObject({
    key: z.literal('header'),
    value: z.strictObject({ summary: z.string(), parentCommit: z.string() }),
  }),
  z.strictObject({
    key: z.literal('file'),
    value: z.strictObject({ path: z.string(), content: z.string(), encoding: z.literal('base64') }),
  }),
  z.strictObject({
    key: z.literal('lfsFile'),
    value: z.strictObject({ path: z.string(), algo: z.literal('sha256'), oid: z.string(), size: z.int() }),
  }),
]);

interface HubFile {
  /** Hash of a large file. */
  readonly lfs?: string;
  readonly bytes: Buffer;
}
interface HubCommit {
  readonly id: string;
  readonly title: string;
  readonly files: ReadonlyMap<string, HubFile>;
}
export interface HubRepo {
  readonly private: boolean;
  /** The newest first. */
  readonly commits: HubCommit[];
  readonly tags: Map<string, string>;
}

export interface HubStandIn extends StandIn {
  readonly repos: ReadonlyMap<string, HubRepo>;
  /** Large files by hash, and how often each was uploaded. */
  readonly uploads: ReadonlyMap<string, number>;
}

export async function startHub(options: Pick<StandInOptions, 'key' | 'fault' | 'hold'>): Promise<HubStandIn> {
  const repos = new Map<string, HubRepo>();
  const large = new Map<string, Buffer>();
  const uploads = new Map<string, number>();
  const repoOf = ([name = '']: readonly string[]): HubRepo => {
    const repo = repos.get(name);
    if (repo === undefined) throw new Refused(404, 'Repository not found');
    return repo;
  };
  const api = (rest: string): RegExp => new RegExp(`^/api/models/([^/]+/[^/]+)${rest}$`);
  const routes: Route[] = [
    {
      method: 'POST',
      path: /^\/api\/repos\/create$/,
      answer({ json }) {
        const { organization, name, visibility } = json(CreateRepo);
        const repo = `${organization}/${name}`;
        if (repos.has(repo)) return { status: 409, json: { error: 'You already created this model repo' } };
        const first = { id: sha1(repo), title: 'initial commit', files: new Map() };
        repos.set(repo, { private: visibility === 'private', commits: [first], tags: new Map() });
        return { json: { url: `https://huggingface.co/${repo}`, name: repo, id: '1' } };
      },
    },
    {
      method: 'GET',
      path: api(''),
      answer({ parts }) {
        if (parts[0] === 'base/model')
          return { json: { id: parts[0], private: false, cardData: { license: 'apache-2.0' } } };
        const repo = repoOf(parts);
        return { json: { id: parts[0], private: repo.private, sha: repo.commits[0]!.id } };
      },
    },
    {
      method: 'GET',
      path: api('/commits/main'),
      answer: ({ parts }) => ({ json: repoOf(parts).commits.map(({ id, title }) => ({ id, title, message: '' })) }),
    },
    {
      method: 'POST',
      path: api('/preupload/main'),
      answer({ json }) {
        const mode = (path: string) => (path.endsWith('.safetensors') ? 'lfs' : 'regular');
        const files = json(Preupload).files.map(({ path }) => ({ path, uploadMode: mode(path), shouldIgnore: false }));
        return { json: { files } };
      },
    },
    {
      method: 'POST',
      path: /^\/([^/]+\/[^/]+)\.git\/info\/lfs\/objects\/batch$/,
      answer({ json, parts, headers }) {
        repoOf(parts);
        const objects = json(LfsBatch).objects.map(({ oid, size }) => {
          const upload = { href: `http://${headers.host}/storage/${oid}?X-Amz-Signature=secret-of-storage` };
          return { oid, size, ...(large.has(oid) ? {} : { actions: { upload } }) };
        });
        return { json: { transfer: 'basic', objects } };
      },
    },
    {
      method: 'PUT',
      path: /^\/storage\/(\w+)$/,
      isOpen: true,
      answer({ body, parts: [oid = ''] }) {
        if (sha256(body) !== oid) throw new Refused(400, 'other bytes');
        large.set(oid, body);
        uploads.set(oid, (uploads.get(oid) ?? 0) + 1);
        return {};
      },
    },
    {
      method: 'POST',
      path: api('/commit/main'),
      answer({ body, parts }) {
        const lines = body
          .toString()
          .split('\n')
          .map((line) => CommitLine.parse(JSON.parse(line)));
        const { commits } = repoOf(parts);
        const files = new Map(commits[0]!.files);
        let title = '';
        for (const line of lines) {
          if (line.key === 'header') {
            title = line.value.summary;
            if (line.value.parentCommit !== commits[0]!.id) throw new Refused(412, 'A commit has happened since');
          } else if (line.key === 'file')
            files.set(line.value.path, { bytes: Buffer.from(line.value.content, 'base64') });
          else {
            const bytes = large.get(line.value.oid);
            if (bytes === undefined) throw new Refused(400, 'the large file is missing');
            files.set(line.value.path, { bytes, lfs: line.value.oid });
          }
        }
        const id = sha1(`${commits[0]!.id} ${title}`);
        commits.unshift({ id, title, files });
        return { json: { success: true, commitOid: id, commitUrl: `/commit/${id}`, hookOutput: '' } };
      },
    },
    {
      method: 'GET',
      path: api('/refs'),
      answer({ parts }) {
        const tags = [...repoOf(parts).tags].map(([name, targetCommit]) => ({
          name,
          ref: `refs/tags/${name}`,
          targetCommit,
        }));
        return { json: { branches: [], converts: [], tags } };
      },
    },
    {
      method: 'POST',
      path: api('/tag/([^/]+)'),
      answer({ json, parts }) {
        const { tag } = json(z.strictObject({ tag: z.string(), message: z.string() }));
        const { tags, commits } = repoOf(parts);
        if (tags.has(tag)) return { status: 409, json: { error: 'Tag reference exists already' } };
        if (!commits.some(({ id }) => id === parts[1])) throw new Refused(404, 'Revision not found');
        tags.set(tag, parts[1]!);
        return {};
      },
    },
    {
      method: 'POST',
      path: api('/paths-info/([^/]+)'),
      answer({ json, parts }) {
        const { paths } = json(z.strictObject({ paths: z.array(z.string()), expand: z.boolean() }));
        const { commits, tags } = repoOf(parts);
        const revision = tags.get(parts[1]!) ?? parts[1];
        const files = commits.find(({ id }) => id === revision)?.files ?? new Map<string, HubFile>();
        const infos = paths.flatMap((path) => {
          const file = files.get(path);
          if (file === undefined) return [];
          const { bytes, lfs } = file;
          const oid = sha1(Buffer.concat([Buffer.from(`blob ${bytes.length}\0`), bytes]));
          const size = bytes.length;
          return [{ type: 'file', path, size, oid, ...(lfs && { lfs: { oid: lfs, size, pointerSize: 134 } }) }];
        });
        return { json: infos };
      },
    },
  ];
  return Object.assign(await startStandIn({ ...options, routes }), { repos, uploads });
}
