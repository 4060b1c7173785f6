/** `prepare`: the run is written down: its configuration, and the scenarios that its plans deal in. */
import { createRequire } from 'node:module';

import { describeConfigDifferences } from '../core/config-differences.ts';
import type { PrepareInput, Prepared, RunConfig } from '../core/contract.ts';
import { TemperError } from '../core/failures.ts';
import { permutation } from '../core/plan-deal.ts';
import { deriveSeed } from '../core/seeds.ts';
import type { Agent, Scenario } from '../sdk/define-agent.ts';
import { checkUnique, readScenarios } from '../sdk/scenarios.ts';
import { decodeJson, encodeJson, encodeJsonLines } from '../store/json.ts';
import { preparedKey, runKey, scenariosKey } from '../store/layout.ts';
import type { RunFile } from '../store/run-reader.ts';
import { asActivity } from './activity.ts';
import { requireAgent, type AgentDependencies } from './dependencies.ts';

interface Split {
  train: Scenario[];
  evaluation: Scenario[];
  heldOut: boolean;
}

/** Where the agent names no evaluation scenarios. */
const HELD_OUT_SHARE = 0.1;

export function createPrepareActivities(dependencies: AgentDependencies) {
  const { store, agents, logger } = dependencies;

  async function prepare({ config }: PrepareInput): Promise<Prepared> {
    const { agent, codeSha256 } = requireAgent(agents, config.agent);
    const recorded = await store.read(preparedKey(config.run));
    if (recorded !== null) {
      await checkRunFile(config, codeSha256);
      return decodeJson(recorded, preparedKey(config.run)) as Prepared;
    }
    // Read first: an agent whose scenarios are refused leaves no run behind.
    const split = await splitScenarios(agent, config);
    await checkRunFile(config, codeSha256);
    return writeScenarios(config, codeSha256, split);
  }

  /** Write-once: a name stands for one configuration. Changed code is noted, and the run goes on. */
  async function checkRunFile(config: RunConfig, agentCodeSha256: string): Promise<void> {
    const file: RunFile = { schema: 1, config, agentCodeSha256, versions: { temper: temperVersion() }, parent: null };
    const { bytes } = await store.publish(runKey(config.run), encodeJson(file));
    const recorded = decodeJson(bytes, runKey(config.run)) as RunFile;
    const differences = describeConfigDifferences(recorded.config, config);
    if (differences.length > 0) throw otherConfig(config.run, differences);
    if (recorded.agentCodeSha256 !== agentCodeSha256) {
      logger.warn({ run: config.run, agent: config.agent }, 'the agent has changed since the run began; it goes on');
    }
  }

  async function writeScenarios(config: RunConfig, agentCodeSha256: string, split: Split): Promise<Prepared> {
    const lines = [...split.train, ...split.evaluation].map((scenario) => ({ id: scenario.id, scenario }));
    const bytes = encodeJsonLines(lines);
    const counts = { trainScenarios: split.train.length, evalScenarios: split.evaluation.length };
    const scenarios = await store.putBlob(bytes);
    await store.replace(scenariosKey(config.run), bytes);
    const prepared: Prepared = { scenarios, ...counts, heldOut: split.heldOut, agentCodeSha256 };
    const published = await store.publish(preparedKey(config.run), encodeJson(prepared));
    logger.info({ run: config.run, ...counts, heldOut: split.heldOut }, 'prepared');
    return decodeJson(published.bytes, preparedKey(config.run)) as Prepared;
  }

  return { prepare: asActivity(dependencies, prepare) };
}

async function splitScenarios(agent: Agent, config: RunConfig): Promise<Split> {
  const scenarios = await readScenarios(agent.scenarios, config.maxScenarios);
  if (scenarios.length === 0) throw tooFew(agent, 'scenarios', 'one', 0);
  if (agent.evalScenarios === undefined) return holdOut(agent, scenarios, config);
  const evaluation = await readScenarios(agent.evalScenarios, config.evalScenarios);
  if (evaluation.length === 0) throw tooFew(agent, 'evalScenarios', 'one', 0);
  checkUnique({ scenarios, evalScenarios: evaluation });
  return { train: scenarios, evaluation, heldOut: false };
}

/** Drawn by the run's seed; both parts keep the agent's order. */
function holdOut(agent: Agent, scenarios: Scenario[], { seed, evalScenarios }: RunConfig): Split {
  if (scenarios.length < 2)
    throw tooFew(agent, 'scenarios', 'two (a tenth is held out for evaluation)', scenarios.length);
  checkUnique({ scenarios });
  const count = Math.min(evalScenarios, Math.max(1, Math.floor(scenarios.length * HELD_OUT_SHARE)));
  const drawn = new Set(permutation(scenarios.length, deriveSeed([seed, 'held-out'])).slice(0, count));
  return {
    train: scenarios.filter((_, index) => !drawn.has(index)),
    evaluation: scenarios.filter((_, index) => drawn.has(index)),
    heldOut: true,
  };
}

function tooFew({ name }: Agent, list: string, least: string, found: number): TemperError {
  return new TemperError(
    'BadConfig',
    `${list} of the agent ${name} must hold at least ${least}, got ${found}; add some`,
  );
}

function otherConfig(run: string, differences: readonly string[]): TemperError {
  const rule = `the run ${run} exists with another configuration (${differences.join('; ')})`;
  return new TemperError(
    'BadConfig',
    `${rule}; give the new one another name with --run, or use the recorded configuration`,
  );
}

function temperVersion(): string {
  const { version } = createRequire(import.meta.url)('../package.json') as { version: string };
  return version;
}
