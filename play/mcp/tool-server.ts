/** MCP servers that an agent lists: whoever loads the agent tries them before anything is played. */
import { badConfig, type TemperError } from '../../core/contract/failures.ts';

/** Registered globally: an agent file may load another copy of this module than the command that checks it. */
export const CHECK_SERVER = Symbol.for('temper.check-mcp-server');

export interface ToolServer {
  /** Starts it in the folder of the agent's file, and returns the names of its tools; throws BadConfig where that fails. */
  readonly [CHECK_SERVER]: (folder: string) => Promise<readonly string[]>;
}

export function isToolServer(value: unknown): value is ToolServer {
  return typeof (value as Partial<ToolServer> | null | undefined)?.[CHECK_SERVER] === 'function';
}

/** Throws BadConfig where one cannot be used here, or where two tools have one name. */
export async function checkToolServers(agent: {
  readonly name: string;
  readonly mcp?: readonly ToolServer[];
  readonly folder?: string;
}): Promise<void> {
  const { name, mcp = [], folder = process.cwd() } = agent;
  const lists = await Promise.all(mcp.map((server) => server[CHECK_SERVER](folder)));
  const names = lists.flat();
  const twice = names.find((each, index) => names.indexOf(each) !== index);
  if (twice !== undefined) throw sameName(`servers of the agent ${name}`, twice);
}

export function sameName(where: string, tool: string): TemperError {
  return badConfig(`two MCP ${where} have a tool ${tool}; give one a prefix: mcp({ prefix: 'files_', … })`);
}
