/** Checkpoints of a run, newest first: what is kept of each, how good it is, and where it is deployed. */
import pLimit from 'p-limit';
import type { EvalResult, StepSummary } from '../../core/contract/contract.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import { policyName } from '../../core/names/policy-name.ts';
import { manifestTimesKey, stepPrefix, type StepPlace } from '../../store/layout.ts';
import { describeWeights, listSteps } from '../../store/records/runs/checkpoints.ts';
import { readBranchCurve } from '../../store/records/runs/curve.ts';
import { GROUPS_AT_ONCE } from '../../store/records/children.ts';
import {
  listDeployments,
  stageOfDeployment,
  stateOfDeployment,
  type RecordedDeployment,
} from '../../store/records/production/deployments.ts';
import { ManifestTimesSchema, readStored } from '../../store/records/file-schemas.ts';
import { readLineage } from '../../store/records/runs/lineage.ts';
import type { NamedWeights } from '../../store/records/runs/manifest.ts';
import { findPromoted } from '../../store/records/runs/promotions.ts';
import { readCommit, readEval, type RunFile } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import type { CheckpointRow } from '../api/run-views.ts';
import type { ViewContext } from '../context/context.ts';
import { requireHead, runCacheOf } from './run-cache.ts';

type Context = Pick<ViewContext, 'store' | 'now'>;

export async function viewCheckpoints(context: Context, run: string): Promise<CheckpointRow[]> {
  const { store } = context;
  const head = await requireHead(context, run);
  const curve = await runCacheOf(store).readSteps(head);
  const rewards = rewardsOf(curve);
  const [places, lineage, deployments, promoted] = await Promise.all([
    listSteps(store, run),
    readLineage(store, run),
    listDeployments(store, run),
    findPromoted(store, run),
  ]);
  const limit = pLimit(GROUPS_AT_ONCE);
  const newest = new Map(places.map(({ branch, step }) => [branch, step]));
  const isOld = ({ branch, step }: StepPlace) => step + STEPS_IN_PROGRESS < newest.get(branch)!;
  const steps = await Promise.all(places.map((place) => limit(() => readStep(store, head.file, place, isOld(place)))));
  const known = knownWeights(context, head.file);
  const isFollowed = (place: StepPlace) => branchOfStep(lineage, place.step) === place.branch;
  // The curve is that of the branches that the run follows.
  const left = new Map<number, Map<number, number | null>>();
  for (const { branch } of places.filter((place) => !isFollowed(place)))
    if (!left.has(branch)) left.set(branch, rewardsOf(await readBranchCurve(store, run, branch)));
  const rows = withEvaluations(steps).map(async ({ place, fixed, evaluation }) => ({
    branch: place.branch,
    step: place.step,
    name: isFollowed(place) ? policyName(place) : null,
    adapterSha256: fixed.adapterSha256,
    ...(await limit(() => known.describe(place, fixed.weights))),
    committedAt: fixed.committedAt,
    reward: (isFollowed(place) ? rewards : (left.get(place.branch) ?? rewards)).get(place.step) ?? null,
    evaluation,
    deployments: deployments.filter(({ checkpoint }) => isAt(checkpoint, place)).map(viewDeployment),
    isProduction: promoted?.checkpoint.manifestSha256 === fixed.manifestSha256 && promoted.checkpoint.run === run,
  }));
  return (await Promise.all(rows)).toReversed();
}

function rewardsOf(curve: readonly StepSummary[]): Map<number, number | null> {
  return new Map(curve.map(({ step, reward }) => [step, reward]));
}

/** Facts of a commit, which never change. */
interface Fixed {
  readonly manifestSha256: string;
  readonly adapterSha256: string;
  readonly weights: NamedWeights;
  readonly committedAt: string | null;
}

interface Step {
  readonly place: StepPlace;
  /** Null: not committed, because it trained nothing or is in progress. */
  readonly fixed: Fixed | null;
  readonly evaluation: EvalResult | null;
}

/** The newest steps of a branch may still get files. */
const STEPS_IN_PROGRESS = 8;

/** Write-once files of a run of thousands of steps are read once a process, and again for another run of the same name. */
const read = new WeakMap<RunFile, Map<string, Step>>();

async function readStep(store: Store, file: RunFile, place: StepPlace, isOld: boolean): Promise<Step> {
  const known = read.get(file) ?? new Map<string, Step>();
  read.set(file, known);
  const key = stepPrefix(place);
  const found = known.get(key);
  if (found !== undefined) return found;
  const step = { place, fixed: await readFixed(store, place), evaluation: await readEval(store, place) };
  if (isOld) known.set(key, step);
  return step;
}

async function readFixed(store: Store, place: StepPlace): Promise<Fixed | null> {
  const commit = await readCommit(store, place);
  if (commit === null) return null;
  const { manifest, sha256 } = commit;
  const times = await readStored(store, manifestTimesKey(place), ManifestTimesSchema);
  return {
    manifestSha256: sha256,
    adapterSha256: manifest.adapter.sha256,
    weights: { adapter: manifest.adapter, optimizer: manifest.optimizer, policies: manifest.policies },
    committedAt: times?.committedAt ?? null,
  };
}

type Committed = Step & { readonly fixed: Fixed };

/** A step that trained nothing was evaluated with the weights of the one before it. */
function withEvaluations(steps: readonly Step[]): Committed[] {
  const committed: Committed[] = [];
  for (const { place, fixed, evaluation } of steps) {
    const before = committed.at(-1);
    if (fixed !== null) committed.push({ place, fixed, evaluation });
    else if (before?.place.branch === place.branch)
      committed[committed.length - 1] = { ...before, evaluation: before.evaluation ?? evaluation };
  }
  return committed;
}

type Kept = Pick<CheckpointRow, 'weights' | 'bytes'>;

/** Thousands of files are not looked for at each view. */
const KNOWN_FOR_MS = 15_000;

class KnownWeights {
  readonly #states = new Map<string, { readonly state: Promise<Kept>; readonly at: number }>();
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  describe(place: StepPlace, weights: NamedWeights): Promise<Kept> {
    const key = stepPrefix(place);
    const now = this.#context.now();
    const known = this.#states.get(key);
    if (known !== undefined && now - known.at < KNOWN_FOR_MS) return known.state;
    const state = this.#read(place, weights);
    this.#states.set(key, { state, at: now });
    // A failure is asked again.
    state.catch(() => this.#states.delete(key));
    return state;
  }

  async #read(place: StepPlace, named: NamedWeights): Promise<Kept> {
    const { weights, bytes } = await describeWeights(this.#context.store, place, named);
    return { weights, bytes };
  }
}

const weightsKnown = new WeakMap<RunFile, KnownWeights>();

function knownWeights(context: Context, file: RunFile): KnownWeights {
  const known = weightsKnown.get(file) ?? new KnownWeights(context);
  weightsKnown.set(file, known);
  return known;
}

function isAt(checkpoint: RecordedDeployment['checkpoint'], place: StepPlace): boolean {
  return checkpoint.run === place.run && checkpoint.branch === place.branch && checkpoint.step === place.step;
}

function viewDeployment(deployment: RecordedDeployment): CheckpointRow['deployments'][number] {
  const at = deployment.status?.at ?? deployment.finished.at(-1)?.at ?? deployment.at;
  return { target: deployment.target, state: stateOfDeployment(deployment), ...stageOfDeployment(deployment), at };
}
