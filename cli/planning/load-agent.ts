/** Loads and checks an agent file before anything is started: its name, its scenarios. */
import { resolve } from 'node:path';
import type { RunConfig } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { countHeldOut } from '../../core/numbers/split-held-out.ts';
import { isAgent, type Agent } from '../../play/agent.ts';
import { checkToolServers } from '../../play/mcp/tool-server.ts';
import { checkProgram } from '../../play/programs/check-program.ts';
import { locateScenarios, openScenarios, SAMPLED_FROM, UniqueIds, type OpenScenarios } from '../../play/scenarios.ts';
import { findAgentFile, importAgentFile } from '../../workers/user-code/agent-code.ts';
import { explainImport } from '../../workers/user-code/explain-import.ts';
import type { CommandEnvironment } from '../command-line/command.ts';

export interface AgentFile {
  readonly path: string;
  readonly agent: Agent;
}

/** Null: the working folder's. */
export async function loadAgent(file: string | null, cwd: string): Promise<AgentFile> {
  const path = findAgentFile(resolve(cwd, file ?? '.'));
  const exported = await importAgent(path);
  if (isAgent(exported)) {
    const agent = locateScenarios(exported, path);
    checkProgram(agent);
    await checkToolServers(agent);
    return { path, agent };
  }
  throw badConfig(
    `the agent file ${path} must have defineAgent({ … }) as its default export; write export default defineAgent({ name, scenarios, rollout })`,
  );
}

type ScenarioLimits = Pick<RunConfig, 'maxScenarios' | 'evalScenarios'>;

/** For reading from others: Ctrl-C ends a wait, which is said. */
export function patienceOf({ signal, output }: Pick<CommandEnvironment, 'signal' | 'output'>) {
  return { signal, onWait: (line: string) => output.errorLine(line) };
}

/** Number of scenarios that an evaluation plays, and of how many. */
interface HeldOutCount {
  readonly held: number;
  readonly of: number;
}

/** Reads the scenarios now, so that their author sees mistakes before a worker reads them. */
export async function checkScenarios(
  { path, agent }: AgentFile,
  limits: ScenarioLimits,
  context: Pick<CommandEnvironment, 'signal' | 'output'>,
): Promise<HeldOutCount> {
  const unique = new UniqueIds();
  const open = (source: Agent['scenarios'], limit: number) => openScenarios(source, limit, patienceOf(context));
  const train = await countScenarios(unique, 'scenarios', open(agent.scenarios, limits.maxScenarios));
  if (train === 0) throw badConfig(`the agent ${agent.name} has no scenarios (${path}); add at least one`);
  if (agent.evalScenarios === undefined) {
    const held = countHeldOut(train, limits.evalScenarios);
    if (train > 1) return { held, of: held };
    throw badConfig(
      `the agent ${agent.name} has one scenario (${path}), but a tenth is held out for evaluation; add more, or add evalScenarios`,
    );
  }
  const of = await countScenarios(unique, 'evalScenarios', open(agent.evalScenarios, SAMPLED_FROM));
  if (of > 0) return { held: Math.min(of, limits.evalScenarios), of };
  throw badConfig(
    `the agent ${agent.name} has empty evalScenarios (${path}); add some, or remove it to hold out a tenth of the scenarios`,
  );
}

async function countScenarios(unique: UniqueIds, list: string, open: OpenScenarios): Promise<number> {
  let count = 0;
  unique.begin(list, open);
  for await (const read of open.scenarios) {
    unique.add(read);
    count += 1;
  }
  return count;
}

async function importAgent(path: string): Promise<unknown> {
  try {
    return await importAgentFile(path);
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    throw badConfig(`the agent file ${path} cannot be loaded: ${await explainImport(cause, path)}`, { cause });
  }
}
