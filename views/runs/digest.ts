/** A digest is what a row tells of a run's curve: computed once for each step, and kept in the cache between processes. */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { sampleEvenly } from '../../core/numbers/statistics.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { findHeldOutLoss } from '../charts/held-out.ts';
import type { RunContext } from '../context/context.ts';
import { findAdvisories, usualSeconds } from './advisories.ts';
import { readProgressTime } from './progress-time.ts';
import { runCacheOf, type RunHead } from './run-cache.ts';

/** Changes with what is computed here. */
const VERSION = 4;
const SPARKLINE_POINTS = 60;

const DigestSchema = z.object({
  version: z.literal(VERSION),
  /** Names the run and its step; another one is computed anew. */
  position: z.string(),
  sparkline: z.array(z.number().nullable()),
  advisories: z.int(),
  usual: z.record(z.string(), z.number()),
  updatedAtMs: z.number().nullable(),
  host: z.string().nullable(),
  loss: z.object({ before: z.number(), after: z.number(), step: z.int() }).nullable(),
});
export type RunDigest = z.output<typeof DigestSchema>;

const kept = new WeakMap<RunHead['file'], RunDigest>();

/** The digest as far as it is known without reading the curve; null if it has to be computed. */
export async function knownDigest({ cacheFolder }: RunContext, head: RunHead): Promise<RunDigest | null> {
  const position = positionOf(head);
  const known = kept.get(head.file) ?? (await readDigest(cacheFolder ?? null, head.run));
  if (known?.position !== position) return null;
  kept.set(head.file, known);
  return known;
}

export async function makeDigest({ store, cacheFolder }: RunContext, head: RunHead): Promise<RunDigest> {
  const steps = await runCacheOf(store).readSteps(head);
  const { atMs, host } = await readProgressTime(store, head.run, head.state ?? { branch: 0, step: 0 });
  const digest: RunDigest = {
    version: VERSION,
    position: positionOf(head),
    sparkline: sampleEvenly(
      steps.map(({ reward }) => reward),
      SPARKLINE_POINTS,
    ),
    advisories: findAdvisories(steps, head.state?.evals).length,
    usual: { ...usualSeconds(steps) },
    updatedAtMs: atMs,
    host,
    loss: findHeldOutLoss(steps),
  };
  kept.set(head.file, digest);
  if (cacheFolder) await keepDigest(cacheFolder, head.run, digest);
  return digest;
}

const identities = new WeakMap<RunHead['file'], string>();

function positionOf({ file, state }: RunHead): string {
  const identity = identities.get(file) ?? hashBytes(encodeJson(file)).slice(0, 16);
  identities.set(file, identity);
  return [identity, state?.branch, state?.step, state?.adapterSha256, state?.state, state?.evals.at(-1)?.step].join(
    ' ',
  );
}

const fileOf = (folder: string, run: string): string => join(folder, run, 'digest.json');

/** Null: there is none, or nothing that this version can read. The cache may be deleted or damaged at any time. */
async function readDigest(folder: string | null, run: string): Promise<RunDigest | null> {
  if (folder === null) return null;
  try {
    return DigestSchema.safeParse(JSON.parse(await readFile(fileOf(folder, run), 'utf8'))).data ?? null;
  } catch {
    return null;
  }
}

/** A cache that cannot be written, on a full disk for example, costs time and nothing else. */
async function keepDigest(folder: string, run: string, digest: RunDigest): Promise<void> {
  const file = fileOf(folder, run);
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    await mkdir(join(folder, run), { recursive: true });
    await writeFile(temporary, encodeJson(digest));
    await rename(temporary, file);
  } catch {
    return;
  }
}
