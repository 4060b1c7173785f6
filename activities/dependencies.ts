/** The dependencies of activities; a worker creates them once. */
import { badConfig } from '../core/contract/failures.ts';
import type { PriceTable } from '../core/numbers/prices.ts';
import type { Agent } from '../play/agent.ts';
import type { EngineConnection } from '../play/connections/engine-connection.ts';
import type { AgentResources } from '../play/resources/agent-resources.ts';
import type { Store } from '../store/store.ts';
import type { Contact } from './contact.ts';
import type { PauseDetector } from './pause-detector.ts';

/** A subset of pino's logger. */
interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface LoadedAgent {
  agent: Agent;
  codeSha256: string;
  /** Resources that this process has set up; null, or absent in tests, for an agent without any. */
  resources?: AgentResources | null;
}

export interface Dependencies {
  store: Store;
  logger: Logger;
  /** The project's prices of hosted models, before list prices. Absent: it has none. */
  prices?: PriceTable;
  /** One for the process. */
  pauses: PauseDetector;
  /** Absent: the server is taken to answer. */
  contact?: Contact;
  clock?: () => number;
}

export interface AgentDependencies extends Dependencies {
  /** Agents by name; a worker plays those it was started with. */
  agents: ReadonlyMap<string, LoadedAgent>;
}

export interface PlayDependencies extends AgentDependencies {
  /** `connectEngine({ url, key })`, one for all activities of a worker. */
  engine: EngineConnection;
  /** The environment with the judges' keys; by default the process's own. */
  env?: NodeJS.ProcessEnv;
}

export function requireAgent(agents: ReadonlyMap<string, LoadedAgent>, name: string): LoadedAgent {
  const loaded = agents.get(name);
  if (loaded !== undefined) return loaded;
  const known = agents.size === 0 ? 'none' : [...agents.keys()].join(', ');
  throw badConfig(`this worker must have the agent ${name}, it has only ${known}; start it with --agent FILE`);
}
