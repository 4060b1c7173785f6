/**
 * Where a run stands: `position.json` of each finished step, with what the run has cost until then. A run that continues,
 * or goes back, reads the one that it begins from; `temper verify` compares each with what follows from the run's groups.
 */
import type {
  Branch,
  CostLedger,
  EvalResult,
  Located,
  LocateInput,
  Position,
  RunCosts,
} from '../../../core/contract/contract.ts';
import { EMPTY_LEDGER } from '../../../core/rules/costs.ts';
import { isUnreadable, TemperError } from '../../../core/contract/failures.ts';
import { planLineage } from '../../../core/names/lineage.ts';
import { leagueAtStart } from '../../../core/plan/league.ts';
import { policiesAtStart } from '../../../core/plan/step.ts';
import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { encodeJson } from '../../bytes/json.ts';
import { positionKey, runKey, stepsPrefix, type StepPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { childNumbers } from '../children.ts';
import { PositionFileSchema, readStored, RunFileSchema } from '../file-schemas.ts';
import { openBranch, readAllChanges, readBranchFiles, type BranchFile } from './lineage.ts';
import { checkpointOf } from './manifest.ts';
import { readCommit, readState } from './run-reader.ts';

/** A step that is taken again keeps its first file: only the costs could differ. */
export async function publishPosition(store: Store, run: string, position: Position): Promise<void> {
  const { branch, step } = position;
  await store.publish(positionKey({ run, branch, step }), encodeJson({ schema: RECORD_SCHEMA, ...position }));
}

export async function readStepPosition(store: Store, place: StepPlace): Promise<Position | null> {
  const stored = await readStored(store, positionKey(place), PositionFileSchema);
  if (stored === null) return null;
  const { schema: _schema, ...position } = stored;
  return position;
}

/** Position from which a run continues: after the last finished step of its newest branch. */
export async function findPosition(store: Store, run: string): Promise<Located> {
  const files = await readBranchFiles(store, run);
  const branch = files.at(-1) ?? null;
  const position = (await readNewest(store, run, branch)) ?? (await readStart(store, run, branch));
  return describe(store, run, position, files);
}

/** Position of a new branch after an older step, or of the one that this request made before. */
export async function rollBack(
  store: Store,
  run: string,
  rollback: NonNullable<LocateInput['rollback']>,
): Promise<Located> {
  const made = await openBranch(store, run, rollback);
  const files = await readBranchFiles(store, run);
  const branch = files.find((file) => file.branch === made) ?? null;
  return describe(store, run, await readStart(store, run, branch), files);
}

async function describe(store: Store, run: string, position: Position, branches: readonly Branch[]): Promise<Located> {
  const { evals, costs } = await readShown(store, run);
  return {
    ...position,
    costs: costs === undefined ? position.costs : withTime(position.costs, costs),
    lineage: planLineage(branches, position.branch).map(({ branch, fromBranch, fromStep }) => {
      return { branch, fromBranch, fromStep };
    }),
    evals: evals.filter(({ step }) => step <= position.step),
    ...(await readAllChanges(store, run)),
  };
}

/** A few of the newest steps may be in progress. */
async function readNewest(store: Store, run: string, file: BranchFile | null): Promise<Position | null> {
  const { branch, fromStep } = file ?? { branch: 0, fromStep: 0 };
  const steps = (await childNumbers(store, stepsPrefix(run, branch))).filter((step) => step > fromStep);
  for (const step of steps.toSorted((a, b) => b - a)) {
    const position = await readStepPosition(store, { run, branch, step });
    // A copy that was cut off has a step's other files before its commit.
    if (position !== null && (await readCommit(store, { ...position.checkpoint, run })) !== null) return position;
  }
  return null;
}

/** A branch begins with one policy for all steps; its skipped steps are still to come. Null: branch 0. */
async function readStart(store: Store, run: string, file: BranchFile | null): Promise<Position> {
  if (file === null) return readBeginning(store, run);
  const place = { run, branch: file.fromBranch, step: file.fromStep };
  const position = file.fromStep === 0 ? await readBeginning(store, run) : await readStepPosition(store, place);
  if (position === null)
    throw new TemperError(
      'StoreCorrupt',
      `${positionKey(place)} is missing; restore it from a copy, or go back to another step`,
    );
  const policies = position.policies.map(() => position.checkpoint);
  return { ...position, branch: file.branch, policies, emptySteps: 0, costs: file.costs ?? position.costs };
}

/** Before the first step, nothing but the first commit is known. */
async function readBeginning(store: Store, run: string): Promise<Position> {
  const commit = await readCommit(store, { run, branch: 0, step: 0 });
  const file = await readStored(store, runKey(run), RunFileSchema);
  if (commit === null || file === null)
    throw new TemperError('StoreCorrupt', `the run ${run} has no commit of step 0; restore it from a copy`);
  const checkpoint = checkpointOf(run, commit);
  const policies = policiesAtStart(file.config, checkpoint);
  const place = { branch: 0, step: 0, checkpoint, policies, ...leagueAtStart(file.config, checkpoint) };
  return { ...place, dealt: 0, open: [], emptySteps: 0, costs: EMPTY_LEDGER };
}

/** What the run's state shows: it is only for display, and may be missing. */
async function readShown(store: Store, run: string): Promise<{ evals: EvalResult[]; costs?: RunCosts | undefined }> {
  const state = await readState(store, run).catch((error: unknown) => {
    if (isUnreadable(error)) return null;
    throw error;
  });
  return { evals: state?.evals ?? [], costs: state?.costs };
}

/** Time that was spent after the position is known to the state alone; all else is counted again with the work. */
function withTime(ledger: CostLedger, { seconds, usd }: RunCosts): CostLedger {
  const { spent } = ledger;
  if (seconds <= spent.seconds) return ledger;
  return {
    ...ledger,
    spent: { ...spent, seconds, usd: { ...spent.usd, ...(usd.gpu !== undefined && { gpu: usd.gpu }) } },
  };
}
