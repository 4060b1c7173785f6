/** Objects of a run to copy, in order: at every moment the copy is a run that stopped earlier, or no run yet. */
import type { BlobRef, RunState } from '../../../core/contract/contract.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { blobRef } from '../../bytes/sha256.ts';
import { readRunTemplate } from '../runs/chat-templates.ts';
import { childNumbers } from '../children.ts';
import * as layout from '../../layout.ts';
import type { StepPlace } from '../../layout.ts';
import { parseCommit, weightsOf, type Commit } from '../runs/manifest.ts';
import { blobsOfConfig, blobsOfStep } from '../runs/references.ts';
import { readPrepared, readState, requireRunFile } from '../runs/run-reader.ts';
import { blobsOfScenarios } from '../runs/scenario-files.ts';
import { findVocabulary } from '../runs/vocabulary.ts';
import type { Store } from '../../store.ts';

export interface StepContents extends StepPlace {
  /** Null if the step had nothing to train. */
  commit: Commit | null;
  blobs: BlobRef[];
  /** All but the manifest, which comes after them. */
  keys: string[];
}

export interface RunContents {
  state: { bytes: Uint8Array; value: RunState } | null;
  /** Keys of the curve, for display. */
  curve: string[];
  /** Scenarios, chat template, vocabulary, examples, the adapter that it began with, and the one that steps are compared with. */
  blobs: BlobRef[];
  /** Before the steps: whatever else a run has, but for what makes it one. */
  others: string[];
  branches: { branch: number; others: string[]; steps: StepContents[] }[];
}

/** Deployments are of the store that made them: what they serve is compared with its engine. */
const IN_PLACES_OF_THEIR_OWN = new Set([
  'branches/',
  'deployments/',
  'journal/',
  'outbound/',
  'steps/',
  'run.json',
  'state.json',
]);

/** A run that is being written is taken up to its last commit: the state is read first, and nothing beyond it is asked for. */
export async function readContents(store: Store, run: string): Promise<RunContents> {
  const file = await requireRunFile(store, run);
  const template = await readRunTemplate(store, file.config);
  const state = await readStateFile(store, run);
  const curve = await listAll(store, layout.curvePrefix(run));
  const prepared = await readPrepared(store, run);
  const vocabulary = await findVocabulary(store, run);
  const others = await listAll(store, layout.runPrefix(run), IN_PLACES_OF_THEIR_OWN);
  const branches = [];
  for (const branch of await childNumbers(store, layout.branchesPrefix(run))) {
    const prefix = `${layout.branchesPrefix(run)}/${branch}`;
    branches.push({
      branch,
      others: await listAll(store, prefix, new Set(['steps/', 'checkpoints/'])),
      steps: await readSteps(store, { run, branch, step: 0 }, state?.value ?? null),
    });
  }
  const blobs = [
    ...(prepared === null ? [] : await blobsOfScenarios(store, prepared.scenarios)),
    ...(template === null ? [] : [blobRef(template)]),
    ...(vocabulary === null ? [] : [vocabulary]),
    ...blobsOfConfig(file.config),
    ...(file.loop === undefined ? [] : broughtBySteps(branches.flatMap(({ steps }) => steps))),
  ];
  return { state, curve, blobs, others, branches };
}

function broughtBySteps(steps: readonly StepContents[]): BlobRef[] {
  const named = steps.flatMap(({ commit }) => (commit === null ? [] : blobsOfStep(commit.manifest)));
  return [...new Map(named.map((ref) => [ref.sha256, ref])).values()];
}

async function readStateFile(store: Store, run: string): Promise<RunContents['state']> {
  const bytes = await store.read(layout.stateKey(run));
  const value = await readState(store, run);
  return bytes && value && { bytes, value };
}

async function readSteps(store: Store, { run, branch }: StepPlace, state: RunState | null): Promise<StepContents[]> {
  const steps: StepContents[] = [];
  for (const step of await childNumbers(store, layout.stepsPrefix(run, branch))) {
    steps.push(await readStep(store, { run, branch, step }));
  }
  const committed = steps.findLast(({ commit }) => commit !== null)?.step ?? -1;
  // Steps with nothing to train have no manifest: the state says that they are over.
  const over = state?.branch === branch ? state.step : -1;
  return steps.filter(({ step }) => step <= Math.max(committed, over));
}

async function readStep(store: Store, place: StepPlace): Promise<StepContents> {
  const key = layout.manifestKey(place);
  const bytes = await store.read(key);
  const commit = bytes === null ? null : parseCommit(bytes, key);
  const keys = await listAll(store, layout.stepPrefix(place), new Set(['manifest.json', 'pruned.json']));
  const blobs = commit === null ? [] : [commit.manifest.adapterConfig, ...weightsOf(commit.manifest)];
  return { ...place, commit, blobs, keys };
}

/** All keys under a folder, however deep, but for some names directly in it. */
async function listAll(store: Store, prefix: string, without: ReadonlySet<string> = new Set()): Promise<string[]> {
  const keys: string[] = [];
  for await (const key of store.list(prefix)) {
    if (without.has(key.slice(prefix.length + 1))) continue;
    if (!key.endsWith('/')) keys.push(key);
    // Not spread: an argument each is more than the stack takes of a step with many groups.
    else for (const below of await listAll(store, key.slice(0, -1))) keys.push(below);
  }
  return keys;
}

/** Hashes that manifests name, by key: what is copied is held to them, and what is found too. */
export function namedHashes({ branches }: RunContents): ReadonlyMap<string, string> {
  const hashes = new Map<string, string>();
  for (const step of branches.flatMap(({ steps }) => steps)) {
    for (const ref of step.commit?.manifest.groups ?? []) {
      const place = layout.placeOfGroup(step, ref);
      hashes.set(layout.rolloutsKey(place), ref.rolloutsSha256);
      hashes.set(layout.judgedKey(place), ref.judgedSha256);
    }
  }
  return hashes;
}

/** Every group that a manifest names must be there to be copied. */
export function requireWhole(store: Store, contents: RunContents): void {
  const keys = new Set(contents.branches.flatMap(({ steps }) => steps).flatMap((step) => step.keys));
  const missing = [...namedHashes(contents).keys()].find((key) => !keys.has(key));
  if (missing === undefined) return;
  throw new TemperError('StoreCorrupt', `${missing} is missing in ${store.uri}; restore it there from another copy`);
}
