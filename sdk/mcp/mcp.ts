/** `temper-rl/mcp`: tools of MCP servers. `const files = mcp({ command: 'npx', args: ['-y', 'some-server'] })`. */
import { tryToolServer } from './check-tool-server.ts';
import { parseOptions, type McpCommandOptions, type McpUrlOptions } from './mcp-options.ts';
import { toolsOfAttempt, type McpTool } from './attempt-tools.ts';
import type { McpContext } from './attempt-calls.ts';
import { CHECK_SERVER, type ToolServer } from '../../play/mcp/tool-server.ts';

export type { McpCommandOptions, McpLimits, McpUrlOptions } from './mcp-options.ts';
export type { McpTool } from './attempt-tools.ts';
export type { McpContext } from './attempt-calls.ts';

export interface McpServer extends ToolServer {
  /**
   * The server's tools, for one attempt: as `toolLoop` takes them, and with what any other SDK needs. The list is the one
   * that the attempt began with, and results are journaled: a retried attempt calls no tool again.
   */
  tools(context: McpContext): Promise<McpTool[]>;
}

/** A server is started when an attempt asks for its tools. */
export function mcp(options: McpCommandOptions | McpUrlOptions): McpServer {
  const settings = parseOptions(options);
  return Object.freeze({
    tools: (context: McpContext) => toolsOfAttempt(settings, context),
    [CHECK_SERVER]: (folder: string) => tryToolServer(settings, folder, (tools) => tools.map(({ name }) => name)),
  });
}
