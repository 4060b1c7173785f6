/** `prepare`: the run is written down: its configuration, and the scenarios that its plans deal in. */
import { PrepareInput, type BlobRef, type Prepared, type RunConfig } from '../core/contract/contract.ts';
import { badConfig, type TemperError } from '../core/contract/failures.ts';
import { findLossProblem } from '../core/rules/loss-options.ts';
import { isSupervisedOnly } from '../core/rules/supervised.ts';
import { preparedKey, scenariosKey } from '../store/layout.ts';
import type { Agent } from '../play/agent.ts';
import type { Patience } from '../play/sources/ask-again.ts';
import { readDataset } from '../store/records/runs/datasets.ts';
import { PreparedFileSchema, publishStored, readStored } from '../store/records/file-schemas.ts';
import { publishRun } from '../store/records/runs/publish-run.ts';
import { putScenarios } from '../store/records/runs/scenario-files.ts';
import type { Store } from '../store/store.ts';
import { asActivity, type Scope } from './activity.ts';
import { requireAgent, type AgentDependencies } from './dependencies.ts';
import { splitScenarios, type ScenarioSplit } from './split-scenarios.ts';

export function createPrepareActivities(dependencies: AgentDependencies) {
  const { store, agents, logger } = dependencies;

  async function prepare({ config }: PrepareInput, scope: Scope): Promise<Prepared> {
    const { agent, codeSha256 } = requireAgent(agents, config.agent);
    const recorded = await readStored(store, preparedKey(config.run), PreparedFileSchema);
    if (recorded !== null) {
      await checkRunFile(config, codeSha256);
      return recorded;
    }
    const complaint = findLossProblem(config);
    if (complaint !== null) throw badConfig(complaint);
    // Read first: an agent whose scenarios are refused leaves no run behind.
    const dealt = await readDealt(store, agent, config, patienceOf(scope));
    try {
      await checkRunFile(config, codeSha256);
      return await writeDealt(config, codeSha256, dealt);
    } finally {
      await dealt.close();
    }
  }

  /** Changed code is noted, and the run goes on. */
  async function checkRunFile(config: RunConfig, agentCodeSha256: string): Promise<void> {
    const { recorded, differences } = await publishRun(store, { config, agentCodeSha256 });
    if (differences.length > 0) throw otherConfig(config.run, differences);
    if (recorded.agentCodeSha256 !== agentCodeSha256) {
      logger.warn(
        { run: config.run, agent: config.agent },
        'the agent has changed since the run started; the run continues with the new agent',
      );
    }
  }

  async function writeDealt(config: RunConfig, agentCodeSha256: string, dealt: Dealt): Promise<Prepared> {
    const { counts, heldOut, datasets } = dealt;
    const scenarios = await dealt.put(config.run);
    const prepared: Prepared = {
      scenarios,
      ...counts,
      heldOut,
      agentCodeSha256,
      ...(datasets.length === 0 ? {} : { datasets }),
    };
    const published = await publishStored(store, preparedKey(config.run), PreparedFileSchema, prepared);
    logger.info({ run: config.run, ...counts, heldOut, ...(datasets.length === 0 ? {} : { datasets }) }, 'prepared');
    return published;
  }

  return { prepare: asActivity(dependencies, PrepareInput, prepare) };
}

/** A wait for a data set is shown where people see what a run waits for. */
function patienceOf(scope: Scope): Patience {
  const onWait = (reason: string, pauseMs: number): void => {
    const [since, nextTryAt] = [Date.now(), Date.now() + pauseMs].map((at) => new Date(at).toISOString());
    const waiting = { attempts: 0, awaited: 'the scenarios', reason, since, nextTryAt };
    scope.showDetail(() => ({ waiting: Date.parse(nextTryAt!) > Date.now() ? waiting : null }));
  };
  return { signal: scope.signal, onWait };
}

/** Scenarios of the agent; of a run that plays none, its examples. */
async function readDealt(store: Store, agent: Agent, config: RunConfig, patience: Patience): Promise<Dealt> {
  const { supervised } = config;
  const examples = supervised && (await readDataset(store, supervised));
  if (supervised === undefined || examples === undefined || !isSupervisedOnly(config)) {
    const split = await splitScenarios(store, agent, config, patience);
    return { ...split, put: (run) => putScenarios(store, run, split.lines()) };
  }
  const { heldOut } = supervised;
  const counts = { trainScenarios: supervised.examples - heldOut, evalScenarios: heldOut };
  return {
    put: (run) => putExamples(store, run, examples),
    counts,
    heldOut: true,
    datasets: [],
    close: async () => undefined,
  };
}

async function putExamples(store: Store, run: string, bytes: Uint8Array): Promise<BlobRef> {
  const ref = await store.putBlob(bytes);
  await store.replace(scenariosKey(run), bytes);
  return ref;
}

/** Scenarios or examples that were read. */
interface Dealt extends Pick<ScenarioSplit, 'counts' | 'heldOut' | 'datasets' | 'close'> {
  put(this: void, run: string): Promise<BlobRef>;
}

function otherConfig(run: string, differences: readonly string[]): TemperError {
  const rule = `the run ${run} exists with another configuration (${differences.join('; ')})`;
  return badConfig(`${rule}; give the new one another name with --run, or use the recorded configuration`);
}
