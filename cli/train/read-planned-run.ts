/** From flags to a run that may be started: everything is checked here, before anything is installed, started or written. */
import type { RunConfig } from '../../core/contract.ts';
import { NAME_PATTERN } from '../../core/wire-constants.ts';
import { describeConfigDifferences } from '../../core/config-differences.ts';
import { recordedDefaults } from '../../core/run-defaults.ts';
import { readAllChanges, readBranches } from '../../store/records/lineage.ts';
import { readRun, type StoredRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { readBaseModel, settleBaseModel } from '../command-line/base-model.ts';
import { keepRecordedDate, readChatTemplate, type ChatTemplate } from '../command-line/chat-template.ts';
import { UsageError } from '../command-line/errors.ts';
import type { EngineDecision } from '../../workers/local-stack/decide-engine.ts';
import { openProjectStore } from '../../workers/project-store.ts';
import type { TrainContext } from './command.ts';
import { checkScenarios, loadAgent } from './load-agent.ts';
import { checkEngine, refuseIdleCorrection } from './check-engine.ts';
import { checkJudge, judgeOptions } from './check-judge.ts';
import { decideRunEngine } from './decide-run-engine.ts';
import { checkReference, readKlReference } from './kl-reference.ts';
import { readWarmStart } from './read-warm-start.ts';
import { applyRunFlags, fieldsOf, flagOf } from './run-flags.ts';
import { checkStartAdapter, filesOf, readStartAdapter, startWith } from './start-adapter.ts';

export interface PlannedRun {
  readonly config: RunConfig;
  readonly agentFile: string;
  readonly models: Readonly<Record<string, string>>;
  /** Given with this command: stored before the run starts. */
  readonly template: ChatTemplate | null;
  /** Of the supervised steps, likewise; null where there are none. */
  readonly examples: Uint8Array | null;
  /** The files of `--adapter`: stored before the run starts. */
  readonly adapterFiles: readonly Uint8Array[];
  /** A person, or the run that it is forked from, said how large micro-batches are. */
  readonly hasOwnMicroBatch: boolean;
  /** What samples, unless the local stack runs already. */
  readonly decided: EngineDecision;
  readonly store: Store;
  /** The run of this name in the store, where there is one: it has this very configuration. */
  readonly existing: StoredRun | null;
  /** True where the run was rolled back or its settings were changed: it goes on where its store says that it stands. */
  readonly isSteered: boolean;
  /** True where nothing is left to do. */
  readonly isComplete: boolean;
}

export async function readPlannedRun(context: TrainContext): Promise<PlannedRun> {
  const { flags, args, project, cwd, env } = context;
  const name = flags.run === null ? null : checkRunName(flags.run);
  const agentFile = await loadAgent(args.agent ?? '.', cwd);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const adapter = await readStartAdapter(flags.adapter, cwd);
  const model = await readBaseModel(flags['base-model'], context, template);
  const { agent, path } = agentFile;
  const names = { run: name ?? agent.name, agent: agent.name, baseModel: model.name };
  const store = await openProjectStore(project, env);
  const known = await readRun(store, names.run);
  const recorded = known?.file.config ?? null;
  const reference = await readKlReference(store, flags['kl-reference'], recorded);
  const values = fieldsOf(flags, template, reference?.manifest.adapter);
  const warm = await readWarmStart(flags['warm-start'], values, cwd);
  const fresh = { ...names, ...judgeOptions(agent), train: recordedDefaults(recorded), ...warm.options };
  const start = startWith(adapter, fresh, values);
  const asked = applyRunFlags(start, values, recorded?.train.loss ?? null);
  checkStartAdapter(adapter, asked);
  await checkEngine(asked, flags, context);
  const decided = await decideRunEngine(asked, known, store, flags, context);
  await refuseIdleCorrection(asked, recorded, flags, context, decided.kind);
  await checkScenarios(agentFile, asked);
  await checkJudge(agent, asked, { store, env });
  // The last check of all: it may download a model.
  const { name: baseModel, models } = await settleBaseModel(model, recorded?.baseModel ?? null, context);
  const config = keepRecordedDate({ ...asked, baseModel }, recorded);
  const begun = recorded && { run: config.run, branch: 0, step: 0 };
  await checkReference(reference, config, { store, project, env, flags, begun });
  const given = {
    agentFile: path,
    models,
    template,
    examples: warm.examples,
    adapterFiles: filesOf(adapter),
    hasOwnMicroBatch: values.has('train.microBatchTokens'),
    decided,
    store,
  };
  return { config, ...given, ...(await findExisting(store, config)) };
}

type Existing = Pick<PlannedRun, 'existing' | 'isSteered' | 'isComplete'>;

/** The run of this name, or none where it may be made; refused where the name stands for something else. */
export async function findExisting(store: Store, config: RunConfig): Promise<Existing> {
  const existing = await readRun(store, config.run);
  if (existing !== null) checkSameConfig(existing.file.config, config);
  const branch = existing === null ? 0 : ((await readBranches(store, config.run)).at(-1)?.branch ?? 0);
  const { amendments } = await readAllChanges(store, config.run);
  // A run that was rolled back after its end is not complete, though no worker has taken note of it yet.
  const isComplete = existing?.state?.state === 'completed' && existing.state.branch === branch;
  // What is complete is only shown.
  if (!isComplete) await store.checkWritable();
  return { existing, isSteered: branch > 0 || amendments > 0, isComplete };
}

export function checkRunName(name: string): string {
  if (NAME_PATTERN.test(name)) return name;
  throw new UsageError(
    `--run must be lower case letters, digits and ._- (at most 63, the first a letter or digit), got ${JSON.stringify(name)}; pass --run my-run`,
  );
}

export function checkSameConfig(recorded: RunConfig, asked: RunConfig): void {
  const differences = describeConfigDifferences(recorded, asked).map((difference) => nameFlag(difference, asked));
  if (differences.length === 0) return;
  throw new UsageError(
    `the run ${asked.run} exists with another configuration (recorded → requested): ${differences.join(', ')}; pass another --run, or the recorded values`,
  );
}

/** `train.lora.rank: 16 → 8` as a person typed it: `--lora-rank: 16 → 8`. */
function nameFlag(difference: string, config: RunConfig): string {
  const [path = ''] = difference.split(':', 1);
  const flag = flagOf(path, config);
  return flag === null ? difference : `--${flag}${difference.slice(path.length)}`;
}
