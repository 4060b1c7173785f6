/** Plan of `temper try`: scenarios and player, checked before anything is started. */
import { badConfig } from '../../core/contract/failures.ts';
import { closestName } from '../../core/names/closest-name.ts';
import type { RolloutConfig } from '../../core/contract/contract.ts';
import type { Agent } from '../../play/agent.ts';
import type { RequestMode } from '../../play/recorder/request.ts';
import { SAMPLED_FROM, sampleScenarios, type Sample } from '../../play/scenarios.ts';
import type { Store } from '../../store/store.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { findPlayers, type AskedSettings, type Player, type Players } from '../players/players.ts';
import { loadAgent, patienceOf, type AgentFile } from '../planning/load-agent.ts';
import type { TryContext } from './command.ts';

export type TriedScenario = Sample['scenarios'][number];

export interface TryPlan extends Players {
  readonly agentFile: AgentFile;
  readonly store: Store;
  readonly player: Player;
  readonly mode: RequestMode;
  /** True if the scenarios are evalScenarios. */
  readonly isHeldOut: boolean;
  readonly rollout: RolloutConfig;
  readonly scenarios: readonly TriedScenario[];
  /** Number of scenarios that these are a sample of. */
  readonly of: number;
  /** Number per scenario. */
  readonly attempts: number;
  /** Settings for a hosted model. */
  readonly asked: AskedSettings;
  readonly isReplayed: boolean;
}

const DEFAULT_SCENARIOS = 3;
const DEFAULT_ATTEMPTS = 2;

export async function planTry(context: TryContext): Promise<TryPlan> {
  const { flags, args, project, cwd, env } = context;
  refuseRepeated(flags);
  const agentFile = await loadAgent(args.agent, cwd);
  const store = await openProjectStore(project, env);
  const configured = await configuredFlags(project, env);
  const model = flags.model ?? configured.model ?? 'pocket';
  // The project's template belongs to its model.
  const template = flags['chat-template'] ?? (flags.model === null ? configured.template : null);
  const named = { ...playerFlags(flags), 'chat-template': template, model: [model] };
  const players = await findPlayers({ ...context, flags: named }, store, agentFile.agent.name);
  const player = players.players[0]!;
  const isHosted = player.hosted !== null;
  const maxTokens = isHosted ? null : flags['max-tokens'];
  return {
    ...players,
    agentFile,
    store,
    player,
    mode: isHosted ? 'text' : flags.eval ? 'eval' : 'train',
    isHeldOut: flags.eval,
    rollout: maxTokens === null ? player.rollout : { ...player.rollout, maxTokens },
    ...(await readTried(agentFile, context)),
    attempts: flags.attempts ?? DEFAULT_ATTEMPTS,
    asked: { temperature: flags.temperature, maxTokens: flags['max-tokens'] },
    isReplayed: flags.replay,
  };
}

type Flags = TryContext['flags'];

function refuseRepeated({ scenario }: Flags): void {
  const twice = scenario.find((id, index) => scenario.indexOf(id) !== index);
  if (twice !== undefined)
    throw badConfig(`--scenario ${twice} is given twice; pass it once, and --attempts for more attempts`);
}

/** Flags of an evaluation, which has token limits only for hosted models. */
function playerFlags({ temperature }: Flags) {
  return { temperature, 'base-url': null, 'key-env': null, price: [], 'max-tokens': null, seed: null };
}

/** Base model and chat template that the project trains: the defaults here. */
async function configuredFlags(project: string, env: NodeJS.ProcessEnv) {
  const { 'base-model': model, 'chat-template': template } = (await loadConfig(project, env)).train;
  return { model: asText(model), template: asText(template) };
}

const asText = (value: unknown) => (typeof value === 'string' ? value : null);

async function readTried(agentFile: AgentFile, context: TryContext): Promise<Pick<TryPlan, 'scenarios' | 'of'>> {
  const { agent, path } = agentFile;
  const { flags } = context;
  const list = flags.eval ? 'evalScenarios' : 'scenarios';
  const source = sourceOf(agent, flags.eval, path);
  const count = flags.scenario.length > 0 ? SAMPLED_FROM : (flags.scenarios ?? DEFAULT_SCENARIOS);
  const read = await sampleScenarios(source, { count, spreadBy: agent.spreadBy, list }, patienceOf(context));
  if (read.of === 0) throw badConfig(`the agent ${agent.name} has no ${list} (${path}); add at least one`);
  if (flags.scenario.length === 0) return read;
  const scenarios = flags.scenario.map((id) => findTried(read.scenarios, id));
  return { scenarios, of: scenarios.length };
}

function sourceOf({ name, scenarios, evalScenarios }: Agent, isEval: boolean, path: string): Agent['scenarios'] {
  if (!isEval) return scenarios;
  if (evalScenarios !== undefined) return evalScenarios;
  throw badConfig(`--eval has no effect: the agent ${name} has no evalScenarios (${path}); add some, or leave it out`);
}

function findTried(all: readonly TriedScenario[], id: string): TriedScenario {
  const found = all.find(({ scenario }) => scenario.id === id);
  if (found !== undefined) return found;
  const ids = all.map(({ scenario }) => scenario.id);
  const guess = closestName(id, ids);
  const remedy = guess === null ? `pass one such as ${ids[0]}` : `did you mean ${guess}?`;
  throw badConfig(`no scenario has the id ${JSON.stringify(id)}, of the ${ids.length} that were read; ${remedy}`);
}
