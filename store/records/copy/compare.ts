/** Compares the runs that two stores have under a name; distinguishes damage on one side from a difference. */
import { describeConfigDifferences } from '../../../core/rules/config-differences.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { decodeJson } from '../../bytes/json.ts';
import { manifestKey, preparedKey, runKey } from '../../layout.ts';
import { parseCommit } from '../runs/manifest.ts';
import { readNotedHash, type RunFile } from '../runs/run-reader.ts';
import { hashBytes } from '../../bytes/sha256.ts';
import type { Store } from '../../store.ts';
import type { RunContents, StepContents } from './contents.ts';

/** Throws StepConflict, naming what differs. Returns the manifests that are broken in the target and right in the source. */
export async function compareRuns(from: Store, to: Store, run: string, contents: RunContents): Promise<Set<string>> {
  const differences = await compareFiles(from, to, run);
  const broken = new Set<string>();
  for (const { steps } of contents.branches) {
    for (const step of steps.filter(({ commit }) => commit !== null)) {
      const found = await compareManifest(from, to, step, steps);
      if (found === 'broken') broken.add(manifestKey(step));
      if (found === 'other') differences.push(`step ${step.step} of branch ${step.branch} differs`);
    }
  }
  if (differences.length === 0) return broken;
  const shown = differences.slice(0, 5).join('; ');
  const more = differences.length > 5 ? `; and ${differences.length - 5} more` : '';
  throw new TemperError(
    'StepConflict',
    `the run ${run} has other contents in ${to.uri} than in ${from.uri} (${shown}${more}); nothing was copied: choose another store, or move one of the two runs elsewhere`,
  );
}

async function compareFiles(from: Store, to: Store, run: string): Promise<string[]> {
  const [ours, theirs] = [await from.read(runKey(run)), await to.read(runKey(run))];
  const differences: string[] = [];
  if (ours !== null && theirs !== null && !isEqual(ours, theirs) && !isBrokenJson(theirs, runKey(run))) {
    const [mine, other] = [ours, theirs].map((bytes) => decodeJson(bytes, runKey(run)) as RunFile) as [
      RunFile,
      RunFile,
    ];
    const changed = describeConfigDifferences(other.config, mine.config);
    differences.push(...(changed.length > 0 ? changed : ['run.json: the code of the agent, or the version of Temper']));
  }
  const [prepared, others] = [await from.read(preparedKey(run)), await to.read(preparedKey(run))];
  if (prepared !== null && others !== null && !isEqual(prepared, others) && !isBrokenJson(others, preparedKey(run)))
    differences.push('prepared.json: the scenarios, or the code of the agent');
  return differences;
}

async function compareManifest(
  from: Store,
  to: Store,
  step: StepContents,
  steps: readonly StepContents[],
): Promise<'same' | 'broken' | 'other'> {
  const { sha256 } = step.commit!;
  await requireSound(from, step, sha256, steps);
  const bytes = await to.read(manifestKey(step));
  if (bytes === null || hashBytes(bytes) === sha256) return 'same';
  // Broken by what its own store says of it, and whole here.
  const named = (await readNotedHash(to, step)) ?? (await readNamedByNext(to, step, steps));
  return named === sha256 ? 'broken' : 'other';
}

async function requireSound(
  store: Store,
  step: StepContents,
  sha256: string,
  steps: readonly StepContents[],
): Promise<void> {
  const named = (await readNotedHash(store, step)) ?? namedBy(steps, step);
  if (named === null || named === sha256) return;
  const key = manifestKey(step);
  throw new TemperError(
    'StoreCorrupt',
    `${key} in ${store.uri} must have the hash ${named}, it has ${sha256}; restore it there`,
  );
}

async function readNamedByNext(
  store: Store,
  step: StepContents,
  steps: readonly StepContents[],
): Promise<string | null> {
  const next = steps.find(({ commit }) => commit?.manifest.parent?.step === step.step);
  const bytes = next === undefined ? null : await store.read(manifestKey(next));
  if (next === undefined || bytes === null || isBrokenJson(bytes, manifestKey(next))) return null;
  return parseCommit(bytes, manifestKey(next)).manifest.parent?.manifestSha256 ?? null;
}

function namedBy(steps: readonly StepContents[], { step }: StepContents): string | null {
  const next = steps.find(({ commit }) => commit?.manifest.parent?.step === step);
  return next?.commit?.manifest.parent?.manifestSha256 ?? null;
}

export function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0;
}

export function isBrokenJson(bytes: Uint8Array, key: string): boolean {
  try {
    decodeJson(bytes, key);
    return false;
  } catch (error) {
    // Files of a later version are valid and never repaired.
    return !(error instanceof TemperError && error.type === 'LaterVersion');
  }
}
