/** A model's run in the store: started once, continued each time a script registers the model. */
import { RunConfig, type Checkpoint } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { planInitialise } from '../../core/plan/step.ts';
import { roleTrainOptions } from '../../core/rules/roles.ts';
import { defaultRunConfig, type RunOptions } from '../../core/rules/run-defaults.ts';
import { childNumbers } from '../../store/records/children.ts';
import { manifestKey, skippedKey, stepsPrefix } from '../../store/layout.ts';
import { checkpointOf } from '../../store/records/runs/manifest.ts';
import { publishRun } from '../../store/records/runs/publish-run.ts';
import { readCommit, readRun, readState } from '../../store/records/runs/run-reader.ts';
import {
  startFrom,
  type PeftAdapter,
  isOfModel,
  PEFT_CONFIG_FILE,
  readPeftAdapter,
} from '../../store/records/runs/peft-adapter.ts';
import type { Store } from '../../store/store.ts';
import type { OpenBackend } from './backend.ts';
import type { LoopRun } from './loop-run.ts';
import { completeCurve, readEvals, printStandstill, writeState } from './loop-state.ts';
import type { TrainableModelOptions } from './model-options.ts';
import { resolve } from 'node:path';
import { differingLoraOption } from '../../core/numbers/lora-difference.ts';

/** Starts the run of a model, or continues it at its last finished step. */
export async function beginLoopRun(
  backend: OpenBackend,
  asked: TrainableModelOptions,
  parent: Checkpoint | null,
): Promise<LoopRun> {
  const { name: model, project } = asked;
  const recorded = (await readRun(backend.store, `${project}.${model}`))?.file.config ?? null;
  const adapter = await readAdapter(asked, parent);
  const config = planConfig(backend, asked, { parent, recorded, adapter });
  checkAdapter(adapter, config);
  for (const bytes of adapter?.files ?? []) await backend.store.putBlob(bytes);
  const opened = await openLoopRun(backend, { project, model }, checkConfig(config));
  backend.atClose(async () => {
    await writeState(opened, { state: 'stopped', phase: 'done', waitingFor: null });
    await printStandstill(opened);
  });
  return opened;
}

interface Beginning {
  readonly parent: Checkpoint | null;
  /** Configuration of an existing run. */
  readonly recorded: RunConfig | null;
  readonly adapter: PeftAdapter | null;
}

function planConfig(
  { baseModel }: OpenBackend,
  { name, project, seed, lora, rollout, roles, competing }: TrainableModelOptions,
  { parent, recorded, adapter }: Beginning,
): RunConfig {
  const began = recorded?.parent ?? null;
  const options: RunOptions = {
    run: `${project}.${name}`,
    agent: project,
    baseModel,
    // The other model's newest checkpoint changes while it trains; a fork keeps the checkpoint it began with.
    parent: began !== null && began.run === parent?.run ? began : parent,
    ...(seed === undefined ? {} : { seed }),
    ...(rollout === undefined ? {} : { rollout }),
    ...(roles && { roles: toRoles(roles) }),
    ...(competing === true ? { competing } : {}),
    train: { ...(lora === undefined ? {} : { lora }), ...roleTrainOptions({ competing }) },
  };
  return defaultRunConfig(startFrom(adapter, options));
}

function toRoles(roles: NonNullable<TrainableModelOptions['roles']>): NonNullable<RunConfig['roles']> {
  const entries = Object.entries(roles).map(([name, { policy }]) => [name, { kind: 'policy', policy } as const]);
  return Object.fromEntries(entries);
}

async function openLoopRun(
  backend: OpenBackend,
  { project, model }: { project: string; model: string },
  config: RunConfig,
): Promise<LoopRun> {
  const { store } = backend;
  const notes = await recordRun(backend, { project, model }, config);
  if ((await readCommit(store, { run: config.run, branch: 0, step: 0 })) === null)
    await backend.runStep({ project, model, work: { kind: 'initialise', input: planInitialise(config, 0) } });
  const before = await readState(store, config.run);
  const place = await findPlace(store, config.run);
  const run: LoopRun = {
    name: config.run,
    project,
    model,
    config,
    backend,
    store,
    ...place,
    gathered: { train: 0, val: 0 },
    curve: [],
    evals: [],
    reward: null,
    openedAtMs: performance.now(),
    stepBeganAtMs: performance.now(),
    secondsBefore: before?.wallSeconds ?? 0,
  };
  await completeCurve(run);
  await readEvals(run);
  await writeState(run, { notes: [...(before?.notes ?? []), ...notes] });
  await backend.track(run.name);
  return run;
}

/** Every value as the wire takes it, or one line that says which is not. */
function checkConfig(config: RunConfig): RunConfig {
  const { error } = RunConfig.safeParse(config);
  const issue = error?.issues[0];
  if (issue === undefined) return config;
  throw badConfig(
    `the model ${config.run} has an invalid ${issue.path.join('.')} (${issue.message}); pass another value`,
  );
}

/** A name belongs to one model. Returns the notes for the run. */
async function recordRun(
  { store, codeSha256 }: OpenBackend,
  loop: { project: string; model: string },
  config: RunConfig,
): Promise<string[]> {
  const { recorded, differences } = await publishRun(store, { config, agentCodeSha256: codeSha256, loop });
  if (recorded.loop?.project !== loop.project || recorded.loop.model !== loop.model) throw takenName(config.run);
  if (differences.length > 0) throw otherModel(config.run, differences);
  return recorded.agentCodeSha256 === codeSha256
    ? []
    : ['the script has changed since the run started; the run continues with the new script'];
}

/**
 * The newest step that is over, by its commit or by the word that it had nothing to train, and the newest checkpoint.
 * Steps are finished in their order.
 */
async function findPlace(store: Store, run: string): Promise<Pick<LoopRun, 'step' | 'checkpoint'>> {
  let last: number | null = null;
  for (const step of (await childNumbers(store, stepsPrefix(run, 0))).toReversed()) {
    const place = { run, branch: 0, step };
    const commit = await readCommit(store, place);
    if (commit !== null) return { step: last ?? step, checkpoint: checkpointOf(run, commit) };
    if (last === null && (await store.read(skippedKey(place))) !== null) last = step;
  }
  throw new TemperError(
    'StoreCorrupt',
    `${manifestKey({ run, branch: 0, step: 0 })} is missing; restore it from a copy`,
  );
}

function takenName(run: string): TemperError {
  return badConfig(
    `the store already has a run ${run} that does not belong to this model; choose another project or model name`,
  );
}

function otherModel(run: string, differences: readonly string[]): TemperError {
  return badConfig(
    `the model ${run} exists with another configuration (recorded → requested): ${differences.join('; ')}; choose another name for the new model, or use the recorded configuration`,
  );
}

/** Null where none is given. A folder is looked for from the script's working folder. */
async function readAdapter(
  { adapter, lora }: TrainableModelOptions,
  parent: Checkpoint | null,
): Promise<PeftAdapter | null> {
  if (adapter === undefined) return null;
  if (lora === null) throw refused('has no effect with lora: null (all weights are trained, without an adapter)');
  if (parent !== null)
    throw refused('has no effect after forkCheckpoint (a fork begins with the adapter of its parent)');
  return readPeftAdapter(resolve(adapter), 'adapter of TrainableModel');
}

/** The model trains this adapter in its own shape, on its own base model. */
function checkAdapter(adapter: PeftAdapter | null, { baseModel, train }: RunConfig): void {
  if (adapter === null) return;
  if (!isOfModel(adapter, baseModel))
    throw refused(
      `was trained on ${adapter.baseModel}, but baseModel is ${baseModel}`,
      `pass that one, or correct base_model_name_or_path in its ${PEFT_CONFIG_FILE} if both are the same model`,
    );
  const found = differingLoraOption(adapter.lora, train.lora ?? {}, ['dropout']);
  if (found !== null)
    throw refused(
      `has ${found.option} ${found.one}, but lora asks for ${found.other}`,
      `leave ${found.option} out of lora`,
    );
}

function refused(why: string, remedy = 'leave one of them out'): TemperError {
  return badConfig(`adapter of TrainableModel ${why}; ${remedy}`);
}
