/** Commits of a made run: its weights follow from its inputs alone. */
import type { Checkpoint, RunConfig } from '../../../core/contract/contract.ts';
import { canonicalJson, sha256Hex } from '../../../core/text/hashes.ts';
import { otherPolicies } from '../../../core/rules/roles.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { hashBytes } from '../../../store/bytes/sha256.ts';
import * as layout from '../../../store/layout.ts';
import { checkpointOf, parseCommit } from '../../../store/records/runs/manifest.ts';
import type { Store } from '../../../store/store.ts';

const text = (content: string): Uint8Array => new TextEncoder().encode(content);

interface CommitWork {
  branch: number;
  step: number;
  groups: readonly object[];
  baseModel: string;
  learningRate: number;
  seed: number;
  train: object | null;
  sampler?: object | undefined;
  samplers?: object | undefined;
  supervised?: object | undefined;
  roles?: object | undefined;
  league?: object | undefined;
  inputsSha256: string;
  platform: Readonly<Record<string, string>> | undefined;
}

async function commitPolicies(store: Store, config: RunConfig, inputsSha256: string) {
  const policies = otherPolicies(config).map(async (name) => {
    const put = (part: string) => store.putBlob(text(`${part} of ${name} made from ${inputsSha256}`));
    return [name, { adapter: await put('adapter'), optimizer: await put('optimizer state') }] as const;
  });
  return policies.length === 0 ? {} : { policies: Object.fromEntries(await Promise.all(policies)) };
}

/** Commits like a GPU worker; the weights follow from the inputs alone: the same inputs give the same bytes. */
export async function commit(
  store: Store,
  config: RunConfig,
  parent: Checkpoint | null,
  work: CommitWork,
): Promise<Checkpoint> {
  const { run } = config;
  const { branch, step, groups, baseModel, learningRate, seed, train, sampler, samplers, inputsSha256 } = work;
  const manifest = {
    schema: 1,
    branch,
    step,
    inputsSha256,
    baseModel,
    groups,
    learningRate,
    seed,
    train,
    ...(sampler === undefined ? {} : { sampler }),
    ...(samplers === undefined ? {} : { samplers }),
    baseModelSha256: sha256Hex(baseModel),
    parent: parent && { step: parent.step, manifestSha256: parent.manifestSha256 },
    adapter: await store.putBlob(text(`adapter made from ${inputsSha256}`)),
    adapterConfig: await store.putBlob(text('{"r":16}')),
    optimizer: await store.putBlob(text(`optimizer state made from ${inputsSha256}`)),
    metrics: { loss: 0.5, trainedTokens: 2 },
    ...(work.step > 0 && work.supervised ? { supervised: work.supervised } : {}),
    ...(work.roles && { roles: work.roles }),
    ...(work.league && { league: work.league }),
    ...(await commitPolicies(store, config, inputsSha256)),
    platform: { cpu: 'abacus', threads: 2, ...work.platform },
  };
  const place = { run, branch, step };
  const { bytes } = await store.publish(layout.manifestKey(place), text(`${canonicalJson(manifest)}\n`));
  const times = { committedAt: '2026-11-20T08:00:00.000Z', host: 'here', manifestSha256: hashBytes(bytes) };
  await store.replace(layout.manifestTimesKey(place), encodeJson(times));
  return checkpointOf(run, parseCommit(bytes, layout.manifestKey(place)));
}
