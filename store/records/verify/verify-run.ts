/**
 * A whole run, read again from its store: every hash, the chain of manifests, and whether each object's inputs follow
 * from what is stored, by the same pure functions that planned them. Needs no server and writes nothing.
 */
import type { GroupResult, RunConfig, TrainInput } from '../../../core/contract/contract.ts';
import { canonicalJson } from '../../../core/text/hashes.ts';
import { hashTraining, planInitialise, type RunPosition } from '../../../core/plan/step.ts';
import { hasWindow, planNext, planTraining } from '../../../core/plan/window.ts';
import { planSupervised } from '../../../core/plan/supervised.ts';
import { isSupervisedStep } from '../../../core/rules/supervised.ts';
import { childNames } from '../children.ts';
import { groupsPrefix, runKey, runPrefix } from '../../layout.ts';
import { readAllChanges } from '../runs/lineage.ts';
import { checkpointOf, trainingOf, type Manifest } from '../runs/manifest.ts';
import { requireRun } from '../runs/run-reader.ts';
import type { Store } from '../../store.ts';
import { namedGroups, readChain, verifyParent, type FoundParent, type NamedGroup, type StoredStep } from './chain.ts';
import { compareInputs, plannedConfig, plannedPosition, walkFrom, type VerifyContext, type Walk } from './context.ts';
import { verifyEval } from './evals.ts';
import { verifyPosition } from './position.ts';
import { Findings } from './findings.ts';
import { verifyGroups } from './groups.ts';
import { verifyRecordings, verifyReplays } from './replays.ts';
import { verifyRunFiles } from './run-files.ts';
import { verifyStepVerdict, type Taken } from './step-verdict.ts';
import { verifyChange, verifyWeights, type SeenBlobs } from './weights.ts';

export interface Verification {
  findings: Findings;
  /** Configuration in `run.json`, if readable. */
  config: RunConfig | null;
  /** Every step with a folder, by branch, then by number. */
  chain: StoredStep[];
  /** Parents by their steps' keys. */
  parents: ReadonlyMap<string, FoundParent>;
}

export async function verifyRun(store: Store, run: string): Promise<Verification> {
  // A name that no run has is bad input; a run that has lost its run.json is a corrupt run.
  if ((await childNames(store, runPrefix(run))).length === 0) await requireRun(store, run);
  const findings = new Findings(run);
  const { config, prepared, isLoop, state } = await verifyRunFiles(store, run, findings);
  const { changes } = await readAllChanges(store, run);
  const context: VerifyContext = {
    store,
    run,
    config,
    changes,
    prepared,
    isLoop,
    findings,
    decided: new Map(),
    otherInputs: [],
  };
  const chain = await readChain(store, run, findings);
  const parents = new Map<string, FoundParent>();
  for (const step of chain) {
    const parent = await verifyParent(store, step, chain, findings);
    if (parent !== null) parents.set(step.key, parent);
  }
  const named = namedGroups(chain, findings);
  const seen: SeenBlobs = new Set();
  const walks = new Map<string, Walk>();
  for (const step of chain) {
    const isDone =
      step.commit !== null || isPassed(step, chain) || (state?.branch === step.branch && state.step >= step.step);
    const before = walkBefore(context, step, { chain, parents, walks });
    walks.set(
      placeOf(step),
      await verifyStep(context, {
        step,
        chain,
        parent: parents.get(step.key) ?? null,
        named: named.get(groupsPrefix(step)) ?? [],
        isDone,
        before,
        seen,
      }),
    );
  }
  reportOtherInputs(context);
  await verifyReplays(store, run, findings);
  await verifyRecordings(store, run, findings);
  if (isLoop)
    findings.notes.push(
      `a script trains ${run}, so no plan says which groups it gathers and trains: this is not checked`,
    );
  return { findings, config, chain, parents };
}

interface StepWork {
  step: StoredStep;
  chain: readonly StoredStep[];
  parent: FoundParent | null;
  named: readonly NamedGroup[];
  isDone: boolean;
  before: Walk;
  seen: SeenBlobs;
}

/** Returns the position after the step. */
async function verifyStep(context: VerifyContext, work: StepWork): Promise<Walk> {
  const { step, chain, parent, named, isDone, before, seen } = work;
  const { findings } = context;
  // A manifest with a flipped bit names blobs and groups that may not be the step's.
  const isSound = !findings.isBroken(step.key);
  if (isSound) await verifyWeights(context, step, seen);
  if (isSound && step.commit !== null && parent !== null) verifyChange(context, step, parent.commit);
  const position = plannedPosition(context, step.branch, step.step - 1, before);
  const sound = isSound ? step : { ...step, commit: null };
  const groups = await verifyGroups(context, { step: sound, position, named, isDone });
  const results = groups.map((group) => group && group.result);
  const taken = await verifyStepVerdict(context, { step, position, named, isDone }, groups);
  const { position: planned, chosen } = taken ?? { position: context.isLoop ? null : position, chosen: results };
  if (isSound && isDone) verifyTraining(context, step, planned, parent, chosen);
  const checkpoint = checkpointAfter(context, step, before, chosen);
  const policies = [...before.policies.slice(1), checkpoint];
  const after =
    step.step === 0
      ? walkFrom(context, results.length, checkpoint)
      : {
          dealt: before.dealt + results.length,
          checkpoint,
          policies,
          players: playersAfter(context, step, { before, position, results }),
          open: openAfter(context, step, before, taken),
        };
  const stands = plannedPosition(context, step.branch, step.step, after);
  if (isSound) await verifyPosition(context, step, chain, stands);
  await verifyEval(context, step, stands);
  return after;
}

/** Groups that a step did not take stay open. */
function openAfter(context: VerifyContext, step: StoredStep, before: Walk, taken: Taken | null): Walk['open'] {
  const config = plannedConfig(context, step);
  if (taken === null || config === null || !hasWindow(config)) return before.open;
  const chosen = taken.chosen.filter((result) => result !== null);
  if (taken.position === null || chosen.length < taken.chosen.length) return null;
  const after = step.commit && checkpointOf(context.run, step.commit);
  return planNext(config, taken.position, chosen, after).open;
}

interface PlayedWork {
  before: Walk;
  position: RunPosition | null;
  results: (GroupResult | null)[];
}

/** The league is scored again from the step's groups; null: one of them is not known. */
function playersAfter(context: VerifyContext, step: StoredStep, { before, position, results }: PlayedWork) {
  const config = plannedConfig(context, step);
  if (before.players?.league === undefined || (config !== null && isSupervisedStep(config, step.step)))
    return before.players;
  const known = results.filter((result) => result !== null);
  if (config === null || position === null || known.length < results.length) return null;
  const { start, league } = planNext(config, position, known, step.commit && checkpointOf(context.run, step.commit));
  return { ...(start && { start }), ...(league && { league }) };
}

/** Null: a manifest should be there and cannot be relied on. */
function checkpointAfter(
  { run, findings }: VerifyContext,
  step: StoredStep,
  before: Walk,
  results: (GroupResult | null)[],
) {
  if (findings.isBroken(step.key)) return null;
  if (step.commit !== null) return checkpointOf(run, step.commit);
  return results.some((result) => result === null) ? null : before.checkpoint;
}

function verifyTraining(
  context: VerifyContext,
  step: StoredStep,
  position: RunPosition | null,
  parent: FoundParent | null,
  results: (GroupResult | null)[],
): void {
  const { findings } = context;
  const config = plannedConfig(context, step);
  const known = results.filter((result) => result !== null);
  const isKnown = position !== null && step.step > 0 && known.length === results.length;
  const planned = isKnown ? planStep(config!, position, known) : null;
  if (step.commit === null) {
    if (planned !== null)
      findings.problem('manifests', step.key, 'it is missing, although its step has something to train');
    return;
  }
  if (isKnown) compareMaterial(context, step.key, step.commit.manifest, planned);
  compareInputs(context, step.key, step.commit.manifest.inputsSha256, plannedInputs(context, step, parent, planned));
}

function planStep(config: RunConfig, position: RunPosition, played: GroupResult[]): TrainInput | null {
  if (isSupervisedStep(config, position.step + 1)) return planSupervised(config, position);
  return planTraining(config, position, played);
}

/** Compares a step's training data with its plan. */
function compareMaterial(
  { findings }: VerifyContext,
  key: string,
  manifest: Manifest,
  planned: TrainInput | null,
): void {
  if (canonicalJson(planned?.supervised ?? null) !== canonicalJson(manifest.supervised ?? null))
    findings.problem('manifests', key, 'it trains other examples than its run deals to this step');
  if (canonicalJson(planned?.groups ?? []) !== canonicalJson(manifest.groups))
    findings.problem('manifests', key, 'it trains other groups than those with a learning signal');
  if (canonicalJson(planned?.samplers ?? null) !== canonicalJson(manifest.samplers ?? null))
    findings.problem('manifests', key, 'it names other policies than those that sampled its groups');
}

/** A manifest holds all that its step was made from, but for its parent; the first commit's is in run.json. */
function plannedInputs(
  { config }: VerifyContext,
  step: StoredStep,
  parent: FoundParent | null,
  planned: TrainInput | null,
): string | null {
  const { manifest } = step.commit!;
  if (manifest.step === 0)
    return config !== null && manifest.parent === null ? planInitialise(config, manifest.branch).inputsSha256 : null;
  const training = trainingOf(manifest);
  if (training === null || parent === null) return planned?.inputsSha256 ?? null;
  return hashTraining(training, checkpointOf(parent.place.run, parent.commit));
}

interface Walked {
  chain: readonly StoredStep[];
  parents: ReadonlyMap<string, FoundParent>;
  walks: ReadonlyMap<string, Walk>;
}

const placeOf = ({ branch, step }: { branch: number; step: number }): string => `${branch}@${step}`;

function isPassed(step: StoredStep, chain: readonly StoredStep[]): boolean {
  return chain.some((other) => other.branch === step.branch && other.step > step.step && other.commit !== null);
}

/** The step that a branch's first manifest names as its parent. */
function walkBefore(context: VerifyContext, step: StoredStep, { chain, parents, walks }: Walked): Walk {
  const onBranch = walks.get(placeOf({ branch: step.branch, step: step.step - 1 }));
  if (onBranch !== undefined) return onBranch;
  if (step.step === 0) return walkFrom(context, 0, null);
  const first = chain.find(({ branch, commit }) => branch === step.branch && commit !== null);
  const from = first && parents.get(first.key);
  const walk = from && from.place.run === step.run ? walks.get(placeOf(from.place)) : undefined;
  const start = walkFrom(context, walk?.dealt ?? 0, walk?.checkpoint ?? null);
  // Roles play against checkpoints of the run's whole lineage.
  if (walk === undefined) return start;
  return { ...start, players: walk.players, open: walk.open };
}

/** Reports run.json if no step matches it. */
function reportOtherInputs({ run, findings, otherInputs }: VerifyContext): void {
  const checked = findings.tallies.get('inputs')!.checked;
  if (checked > 1 && otherInputs.length >= checked - 1) {
    findings.problem(
      'inputs',
      runKey(run),
      'it does not describe this run: the inputs computed from it and prepared.json match no step',
    );
    return;
  }
  for (const object of otherInputs)
    findings.problem('inputs', object, 'its inputs differ from those computed from run.json and its parent');
}
