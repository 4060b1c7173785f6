/** `allocate` and `conclude`: which run a firing of a schedule is, and what the next one begins with. */
import { z } from 'zod';

import {
  AllocateInput,
  ConcludeInput,
  RunConfig,
  type Allocated,
  type Checkpoint,
  type ProductionSource,
} from '../core/contract/contract.ts';
import { badConfig, TemperError } from '../core/contract/failures.ts';
import { firingRunName, planFiring, planProductionFiring } from '../core/plan/firing.ts';
import { describeTooFew } from '../core/rules/production.ts';
import { ConclusionFileSchema, FiringFileSchema, publishStored } from '../store/records/file-schemas.ts';
import { findCurrentCheckpoint } from '../store/records/runs/find-checkpoint.ts';
import { conclusionKey, firingKey, runKey } from '../store/layout.ts';
import {
  chooseForFiring,
  findProductionStart,
  findTooFew,
  recordWaiting,
} from '../store/records/production/firings.ts';
import { firingPromotionKey, readPromotions } from '../store/records/runs/promotions.ts';
import { newestOf, readFirings, type Firing, type FiringFile } from '../store/records/production/schedules.ts';
import type { Store } from '../store/store.ts';
import { asActivity } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

/** The configuration is parsed apart: a schedule outlives versions, and is told what to do where its own is too old. */
const AllocateAnyInput = AllocateInput.extend({ config: z.unknown() });

export function createScheduleActivities(dependencies: Dependencies) {
  const { store, logger } = dependencies;

  /** Write-once under the firing's workflow: whoever asks again gets the same run, with the same parent. */
  async function allocate(input: z.infer<typeof AllocateAnyInput>): Promise<Allocated> {
    const { schedule, firing, config: recorded, from, production } = input;
    const config = readTemplate(schedule, recorded);
    const firings = await readFirings(store, schedule);
    const known = firings.find((each) => each.firing === firing);
    if (known !== undefined) return begin(input, config, known);
    const next = (firings.at(-1)?.number ?? 0) + 1;
    const parent = production ? await findProductionStart(store, production, from) : (newestOf(firings) ?? from);
    if (production !== undefined && parent !== null) {
      const place = { number: next, run: firingRunName(schedule, next), parent, checkpoint: null };
      const tooFew = await findTooFew(store, production, place);
      if (tooFew !== null) return wait(schedule, toAllocated(config, place), tooFew);
    }
    for (let number = next; ; number++) {
      const run = firingRunName(schedule, number);
      if (!(await claim(schedule, number, { schema: 1, firing, run, parent }))) continue;
      logger.info({ schedule, firing, run, parent }, 'allocated');
      return begin(input, config, { number, run, parent, checkpoint: null });
    }
  }

  /** A firing's conversations are chosen under its run's name: a repetition finds them again. */
  async function begin(
    { schedule, production }: z.infer<typeof AllocateAnyInput>,
    template: RunConfig,
    firing: Omit<Firing, 'schema' | 'firing'>,
  ): Promise<Allocated> {
    const allocated = toAllocated(template, firing);
    if (production === undefined || (await isOver(store, schedule, firing, production))) return allocated;
    const chosen = await chooseForFiring(store, schedule, firing, production);
    if (chosen === null) return wait(schedule, allocated, describeTooFew(production, { found: 0, leftOut: {} }));
    const config = planProductionFiring(allocated.config, chosen, production.epochs);
    if (isCut(template, config)) logger.warn({ run: firing.run, steps: config.steps }, CUT);
    return { ...allocated, concluded: null, config };
  }

  async function wait(schedule: string, allocated: Allocated, tooFew: string): Promise<Allocated> {
    await recordWaiting(store, schedule, tooFew);
    logger.info({ schedule }, `nothing is trained: ${tooFew}`);
    return { ...allocated, tooFew };
  }

  /** False where the number is another firing's, or the name is a run's that somebody started by hand. */
  async function claim(schedule: string, number: number, file: FiringFile): Promise<boolean> {
    if ((await store.read(runKey(file.run))) !== null) return false;
    const { firing } = await publishStored(store, firingKey(schedule, number), FiringFileSchema, { ...file });
    return firing === file.firing;
  }

  async function conclude({ schedule, number, state }: ConcludeInput): Promise<Checkpoint> {
    const checkpoint = await findCurrentCheckpoint(store, state);
    if (checkpoint === null) throw nothingCommitted(state.run, state.adapterSha256);
    const key = conclusionKey(schedule, number);
    return (await publishStored(store, key, ConclusionFileSchema, { schema: 1, checkpoint })).checkpoint;
  }

  return {
    allocate: asActivity(dependencies, AllocateAnyInput, allocate),
    conclude: asActivity(dependencies, ConcludeInput, conclude),
  };
}

const CUT = 'the run has fewer warm-up steps or restarts than its schedule asks for: its conversations need few steps';

function isCut(asked: RunConfig, config: RunConfig): boolean {
  return (['warmupSteps', 'learningRateRestarts'] as const).some((name) => config[name] !== asked[name]);
}

/** A firing that ended between its conclusion and its promotion goes on: its run, which is complete, ends at once. */
async function isOver(
  store: Store,
  schedule: string,
  { number, checkpoint }: Pick<Firing, 'number' | 'checkpoint'>,
  { run }: ProductionSource,
): Promise<boolean> {
  if (checkpoint === null) return false;
  const key = firingPromotionKey(schedule, number);
  return (await readPromotions(store, run)).some((row) => row.key === key);
}

/** A schedule outlives versions: a configuration that this one does not take is told, with what to do. */
function readTemplate(schedule: string, recorded: unknown): RunConfig {
  const { data, error } = RunConfig.safeParse(recorded);
  if (data !== undefined) return data;
  const [issue] = error.issues;
  throw badConfig(
    `the schedule ${schedule} must have a configuration of this version of Temper, but its ${issue?.path.join('.')} is invalid (${issue?.message}); delete the schedule and create it again`,
  );
}

function toAllocated(
  template: RunConfig,
  { number, run, parent, checkpoint }: Pick<Firing, 'number' | 'run' | 'parent' | 'checkpoint'>,
): Allocated {
  return { number, config: planFiring(template, run, number, parent), concluded: checkpoint };
}

function nothingCommitted(run: string, adapterSha256: string | null): TemperError {
  return new TemperError(
    'StoreCorrupt',
    `the run ${run} must have committed the adapter ${adapterSha256} that it ended with, but its store does not have it; restore it from a copy`,
  );
}
