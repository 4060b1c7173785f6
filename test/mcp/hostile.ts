/** Attempts with a server that misbehaves, against an engine that nobody asks. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { RolloutContext } from '../../play/agent.ts';
import { mcp, type McpCommandOptions, type McpServer, type McpTool } from '../../sdk/mcp/mcp.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { FakeEngine } from '../fake-engine.ts';
import { playOne, type PlayOptions } from '../play/play.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const PROGRAM = fileURLToPath(new URL('hostile-server.mjs', import.meta.url));
const NOBODY = { url: 'http://127.0.0.1:9', key: 'none' } as FakeEngine;

/** Started as `mode`; counts in `file`. */
export function hostile(options: Partial<McpCommandOptions> = {}, mode = 'plain', file?: string): McpServer {
  const args = [PROGRAM, mode, ...(file === undefined ? [] : [file])];
  return mcp({ command: process.execPath, args, ...options });
}

export function temporaryFile(name: string): string {
  const folder = temporaryFolder();
  const file = join(folder, name);
  writeFileSync(file, '');
  return file;
}

/** How often a line that begins so stands in a file. */
export function countLines(file: string, start: string): number {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(start)).length;
}

export type Call = (name: string, args?: object) => Promise<string>;

export const callerOf =
  (tools: readonly McpTool[]): Call =>
  (name, args = {}) =>
    tools.find((each) => each.name === name)!.text(args);

/** An attempt that uses one server; what it says is the attempt's log. */
export function playWith(
  server: McpServer,
  use: (call: Call, context: RolloutContext, tools: readonly McpTool[]) => Promise<unknown>,
  options: PlayOptions = {},
): Promise<AttemptRecord> {
  const rollout = { attemptTimeoutMs: 60_000, ...options.rollout };
  return playOne(
    NOBODY,
    async (context) => {
      const tools = await server.tools(context);
      const said = await use(callerOf(tools), context, tools);
      context.log(typeof said === 'string' ? said : JSON.stringify(said));
      return 1;
    },
    { ...options, rollout },
  );
}
