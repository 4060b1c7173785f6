/** An MCP server tried before anything is played: whatever is wrong then is its user's to mend. */
import { TemperError } from '../../core/failures.ts';
import { listTools } from '../../play/mcp/list-tools.ts';
import { describeServer } from '../../play/mcp/server-spec.ts';
import { leaseServer } from '../../play/mcp/servers.ts';
import type { ServerSettings } from './mcp-options.ts';

/** Names of its tools. */
export async function checkServer({ spec, selection }: ServerSettings, folder: string): Promise<string[]> {
  const lease = leaseServer(spec, folder);
  try {
    const { connection } = await lease.connect();
    return (await listTools(connection, spec, selection)).map(({ name }) => name);
  } catch (error) {
    throw asBadConfig(error, describeServer(spec));
  } finally {
    await lease.release();
  }
}

function asBadConfig(error: unknown, server: string): TemperError {
  if (error instanceof TemperError && error.type === 'BadConfig') return error;
  const { message } = error as Error;
  const rule = message.startsWith(server) ? message : `${server} does not list its tools: ${message}`;
  return new TemperError('BadConfig', `${rule}; run it by hand, and correct mcp({ … })`, { cause: error });
}
