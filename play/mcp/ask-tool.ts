/** One call of a tool: the request that it is, and its answer as text. */
import type { Connection } from './connection.ts';
import type { ListedTool, ToolMethod } from './list-tools.ts';
import { readList } from './read-list.ts';
import { textOfCall, textOfResource } from './result-text.ts';

export interface ToolAnswer {
  readonly text: string;
  /** The server says that the call failed. */
  readonly failed: boolean;
}

type Params = Record<string, unknown>;
type Ask = (connection: Connection, name: string, args: Params, signal: AbortSignal) => Promise<ToolAnswer>;

const ASK: Readonly<Record<ToolMethod, Ask>> = {
  'tools/call': async (connection, name, args, signal) => {
    const result = await connection.ask('tools/call', { name, arguments: args }, signal);
    return { text: textOfCall(result), failed: result.isError === true };
  },
  'resources/list': async (connection, _name, _args, signal) => {
    const resources = await listResources(connection, signal);
    return found(resources.map(({ uri, name, description, mimeType }) => ({ uri, name, description, mimeType })));
  },
  'resources/read': async (connection, _name, { uri }, signal) => {
    const { contents } = await connection.ask('resources/read', { uri }, signal);
    return { text: contents.map(textOfResource).join('\n'), failed: false };
  },
};

/** All pages. */
export function listResources(connection: Connection, signal?: AbortSignal) {
  return readList(
    (asked) => connection.ask('resources/list', asked, signal),
    (page) => page.resources,
  );
}

export function askTool(
  connection: Connection,
  { method, original }: ListedTool,
  args: Params,
  signal: AbortSignal,
): Promise<ToolAnswer> {
  return ASK[method](connection, original, args, signal);
}

function found(list: readonly object[]): ToolAnswer {
  return { text: JSON.stringify(list), failed: false };
}
