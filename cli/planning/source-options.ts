/** The options of a run that its source decides: an agent's own, those of chats, or those of recorded conversations. */
import { badConfig } from '../../core/contract/failures.ts';
import type { ProductionConfig, ProductionSource, RunConfig, SupervisedConfig } from '../../core/contract/contract.ts';
import { stepsOfPass } from '../../core/plan/production.ts';
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import { roleTrainOptions } from '../../core/rules/roles.ts';
import { layoutOf, type RunOptions } from '../../core/rules/run-defaults.ts';
import { SUPERVISED_AGENT } from '../../core/rules/supervised.ts';
import type { Store } from '../../store/store.ts';
import { judgeOptions } from './check-judge.ts';
import { checkRunName } from './find-existing.ts';
import type { Parent } from './find-parent.ts';
import { inheritFrom } from './inherited-config.ts';
import { loadAgent, type AgentFile } from './load-agent.ts';
import {
  planSupervisedSteps,
  readExamplesFile,
  stepsOfEpochs,
  supervisedFields,
  type ExamplesFile,
} from './read-examples.ts';
import { CONVERSATIONS_PER_STEP, expectChosen, expectProduction, productionOptions } from './read-production.ts';
import { roleOptions } from './read-roles.ts';
import type { RunSource } from './run-source.ts';

export interface LoadedSource {
  /** Name of the run: by default the agent's or the file's. */
  readonly run: string;
  readonly agent: string;
  /** Null for a run with supervised steps only. */
  readonly agentFile: AgentFile | null;
  /** Chats of the supervised steps. */
  readonly chats: ExamplesFile | null;
}

export async function loadSource(
  source: RunSource,
  { name, warmStart }: { readonly name: string | null; readonly warmStart: string | null },
  cwd: string,
): Promise<LoadedSource> {
  if (source.kind === 'chats') {
    const chats = await readExamplesFile(source.file, cwd);
    return { run: name ?? runNameOf(chats.name), agent: SUPERVISED_AGENT, agentFile: null, chats };
  }
  const agentFile = await loadAgent(source.file, cwd);
  const chats = warmStart === null ? null : await readExamplesFile(warmStart, cwd);
  const agent = agentFile.agent.name;
  const usual = source.kind === 'agent' ? agent : checkRunName(`${source.production.run}-production`);
  return { run: name ?? usual, agent, agentFile, chats };
}

function runNameOf(file: string): string {
  const name = file.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, '-');
  if (NAME_PATTERN.test(name)) return name;
  throw badConfig(`the run must have a name, and none can be made from ${file}; pass --run my-run`);
}

interface Given {
  /** Name of the run. */
  readonly run: string;
  readonly parent: Parent | null;
  /** Configuration of the run of this name, if there is one. */
  readonly recorded: RunConfig | null;
  /** Values of flags by the path of their field. */
  readonly values: ReadonlyMap<string, unknown>;
  readonly epochs: number | null;
  /** A schedule takes its options from flags, and only weights from a checkpoint; its firings choose conversations. */
  readonly isScheduled: boolean;
  readonly store: Store;
  readonly env: NodeJS.ProcessEnv;
}

type Options = Omit<RunOptions, 'run' | 'agent' | 'baseModel'>;

export async function sourceOptions(source: RunSource, loaded: LoadedSource, given: Given): Promise<Options> {
  if (source.kind === 'chats') return chatOptions(loaded.chats!, given);
  if (source.kind === 'agent') return agentOptions(loaded, given);
  const { parent, isScheduled } = given;
  const options = productionOptions(parent!);
  if (isScheduled) return { ...options, production: expectProduction(source.production, parent!.checkpoint) };
  const production = await expectChosen(source.production, { ...given, parent: parent! });
  return { ...options, production, steps: stepsOfProduction(source.production, production, given.values) };
}

/** Steps of a run that trains these conversations. */
export function stepsOfProduction(
  { epochs }: ProductionSource,
  production: ProductionConfig,
  values: ReadonlyMap<string, unknown>,
): number {
  return epochs * stepsOfPass(production, Number(values.get('groupsPerStep') ?? CONVERSATIONS_PER_STEP));
}

async function agentOptions({ agentFile, chats }: LoadedSource, given: Given): Promise<Options> {
  const { parent, recorded, values, isScheduled, store, env } = given;
  const { agent } = agentFile!;
  const ofAgent = { ...judgeOptions(agent), ...(await roleOptions(agent, { store, env })) };
  const ofRoles = roleTrainOptions(agent);
  if (parent !== null && !isScheduled) {
    const inherited = inheritFrom(parent.config, values);
    return { ...inherited, ...ofAgent, train: { ...inherited.train, ...ofRoles }, parent: parent.checkpoint };
  }
  const train = { ...layoutOf(parent?.config ?? recorded), ...ofRoles };
  if (chats === null) return { ...ofAgent, train };
  const supervised = planSupervisedSteps(chats, supervisedFields(values));
  const steps = supervised.steps ?? stepsOfEpochs(supervised, 1);
  return { ...ofAgent, train, supervised: { ...supervised, steps } };
}

/** Of a parent, its weights, sampling and optimizer: options of attempts do not apply to examples. */
function chatOptions(chats: ExamplesFile, { parent, recorded, values, epochs }: Given): Options {
  const supervised = planSupervisedSteps(chats, supervisedFields(values));
  const steps = stepsOf(epochs, supervised);
  if (parent === null) return { steps, supervised, train: layoutOf(recorded) };
  const { rollout, train } = parent.config;
  const { lora, optimizer } = train;
  const own = { lora, optimizer, ...layoutOf(parent.config) };
  return { steps, supervised, parent: parent.checkpoint, rollout, train: own };
}

function stepsOf(epochs: number | null, supervised: SupervisedConfig): number {
  if (epochs === null || epochs > 0) return stepsOfEpochs(supervised, epochs ?? 1);
  throw badConfig(`--epochs must be greater than 0, got ${epochs}; pass --epochs 1`);
}
