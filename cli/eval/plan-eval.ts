/** Plan of `temper eval`: scenarios and players, checked before anything is started. */
import { badConfig } from '../../core/contract/failures.ts';
import type { Scenario } from '../../play/agent.ts';
import { sampleScenarios, spreadValue } from '../../play/scenarios.ts';
import { drawSample } from '../../core/numbers/split-held-out.ts';
import { defaultRunConfig, EVAL_ATTEMPTS_AT_ONCE } from '../../core/rules/run-defaults.ts';
import { readStoredScenarios, streamStoredScenarios } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { loadAgent, patienceOf, type AgentFile } from '../planning/load-agent.ts';
import type { EvalContext } from './command.ts';
import { planJudging, type Judging } from './judge-outcomes.ts';
import { findPlayers, type AskedSettings, type Player, type Players } from '../players/players.ts';
import type { CheckpointTarget } from '../players/target.ts';

export interface EvalPlan extends Players {
  readonly agentFile: AgentFile;
  readonly store: Store;
  readonly scenarios: readonly Scenario[];
  /** Of each scenario in the run's numbering. */
  readonly indexes: readonly number[];
  /** Number of held-out scenarios that these are a sample of. */
  readonly of: number;
  readonly concurrency: number;
  /** Settings for hosted models, from flags. */
  readonly asked: AskedSettings;
  /** Null if the attempts keep the agent's own rewards. */
  readonly judging: Judging | null;
  /** Notes for readers of the numbers. */
  readonly notes: readonly string[];
}

export async function planEval(context: EvalContext): Promise<EvalPlan> {
  const { flags, args, project, cwd, env } = context;
  const agentFile = await loadAgent(args.agent, cwd);
  const store = await openProjectStore(project, env);
  const found = await findPlayers(context, store, agentFile.agent.name);
  const { players } = found;
  const owned = players.flatMap(({ checkpoint }) => (isOf(agentFile, checkpoint) ? checkpoint : []));
  const heldOut = await readHeldOut(store, agentFile, owned[0] ?? null, context);
  return {
    agentFile,
    store,
    ...found,
    ...heldOut,
    concurrency: flags.concurrency ?? EVAL_ATTEMPTS_AT_ONCE,
    judging: planJudging(agentFile.agent, found, context),
    asked: { temperature: flags.temperature, maxTokens: flags['max-tokens'] },
    notes: await noteTrained(store, players, heldOut.scenarios),
  };
}

function isOf({ agent }: AgentFile, checkpoint: CheckpointTarget | null): boolean {
  return checkpoint?.prepared != null && checkpoint.config.agent === agent.name;
}

type HeldOut = Pick<EvalPlan, 'scenarios' | 'indexes' | 'of'>;

/** Held-out scenarios of the run, if one of its checkpoints is played: its numbers then compare with the run's own. */
async function readHeldOut(
  store: Store,
  { agent, path }: AgentFile,
  checkpoint: CheckpointTarget | null,
  context: EvalContext,
): Promise<HeldOut> {
  const { scenarios: limit } = context.flags;
  if (checkpoint?.prepared) {
    const { trainScenarios: first, evalScenariosOf } = checkpoint.prepared;
    const lines = await readStoredScenarios(store, checkpoint.prepared, first);
    const isWhole = limit === null || limit >= lines.length;
    const drawn = drawSample(
      lines.map(({ id }) => id),
      limit ?? lines.length,
      isWhole ? [] : lines.map(({ scenario }) => spreadValue(scenario as Scenario, agent.spreadBy)),
    );
    const scenarios = drawn.map((index) => lines[index]!.scenario as Scenario);
    return { scenarios, indexes: drawn.map((index) => first + index), of: evalScenariosOf ?? lines.length };
  }
  const { evalScenarios } = defaultRunConfig({ run: agent.name, agent: agent.name, baseModel: 'pocket' });
  const list = agent.evalScenarios === undefined ? 'scenarios' : 'evalScenarios';
  const source = agent.evalScenarios ?? agent.scenarios;
  const sample = await sampleScenarios(
    source,
    { count: limit ?? evalScenarios, spreadBy: agent.spreadBy, list },
    patienceOf(context),
  );
  const scenarios = sample.scenarios.map(({ scenario }) => scenario);
  const indexes = sample.scenarios.map(({ index }) => index);
  return { scenarios: nonEmpty(scenarios, path), indexes, of: sample.of };
}

function nonEmpty(scenarios: readonly Scenario[], path: string): readonly Scenario[] {
  if (scenarios.length > 0) return scenarios;
  throw badConfig(`the agent has no scenarios to play (${path}); add at least one`);
}

/** Notes players that were trained on these scenarios, which may be held out of another run. */
async function noteTrained(
  store: Store,
  players: readonly Player[],
  scenarios: readonly Scenario[],
): Promise<string[]> {
  const ids = new Set(scenarios.map(({ id }) => id));
  const notes: string[] = [];
  for (const { name, checkpoint } of players) {
    if (!checkpoint?.prepared) continue;
    let trained = 0;
    for await (const { id } of streamStoredScenarios(store, checkpoint.prepared, 0, checkpoint.prepared.trainScenarios))
      if (ids.has(id)) trained += 1;
    if (trained > 0) notes.push(`${name} was trained on ${trained} of these ${scenarios.length} scenarios`);
  }
  return notes;
}
