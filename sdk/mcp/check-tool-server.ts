/** An MCP server tried before anything is played: whatever is wrong then is its user's to mend. */
import { TemperError } from '../../core/failures.ts';
import { Connection } from '../../play/mcp/connection.ts';
import { listTools } from '../../play/mcp/list-tools.ts';
import { describeServer } from '../../play/mcp/server-spec.ts';
import type { ServerSettings } from './mcp-options.ts';

/** Names of its tools. It is ended at once: what it holds, such as a port, is for the worker's. */
export async function checkToolServer({ spec, selection }: ServerSettings, folder: string): Promise<string[]> {
  let connection: Connection | null = null;
  try {
    connection = await Connection.open(spec, folder);
    return (await listTools(connection, spec, selection)).map(({ name }) => name);
  } catch (error) {
    throw asBadConfig(error, describeServer(spec));
  } finally {
    await connection?.end();
  }
}

function asBadConfig(error: unknown, server: string): TemperError {
  if (error instanceof TemperError && error.type === 'BadConfig') return error;
  const { message } = error as Error;
  const rule = message.startsWith(server) ? message : `${server} does not list its tools: ${message}`;
  return new TemperError('BadConfig', `${rule}; run it by hand, and correct mcp({ … })`, { cause: error });
}
