/** An MCP server tried before anything is played: whatever is wrong then is its user's to mend. */
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { Connection } from '../../play/mcp/connection.ts';
import { listTools, type ListedTool } from '../../play/mcp/list-tools.ts';
import { describeServer } from '../../play/mcp/server-spec.ts';
import type { ServerSettings } from './mcp-options.ts';

/** Its tools, and what `read` asks besides. It is ended at once: what it holds, such as a port, is for the worker's. */
export async function tryToolServer<T>(
  { spec, selection }: ServerSettings,
  folder: string,
  read: (tools: readonly ListedTool[], connection: Connection) => T | Promise<T>,
  remedy = 'correct mcp({ … })',
): Promise<T> {
  let connection: Connection | null = null;
  try {
    connection = await Connection.open(spec, folder);
    return await read(await listTools(connection, spec, selection), connection);
  } catch (error) {
    if (error instanceof TemperError && error.type === 'BadConfig') throw error;
    const [server, { message }] = [describeServer(spec), error as Error];
    const rule = message.startsWith(server) ? message : `${server} does not list its tools: ${message}`;
    throw badConfig(`${rule}; run it by hand, and ${remedy}`, { cause: error });
  } finally {
    await connection?.end();
  }
}
