/** One call of a tool: the request that it is, and its answer as text. */
import type { Connection } from './connection.ts';
import { type ListedTool, type ToolMethod, readList } from './list-tools.ts';
import type { McpSdk } from './mcp-sdk.ts';

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

type Results = McpSdk['results'];
type CallResult = Results['tools/call']['_zod']['output'];
type Content = NonNullable<CallResult['content']>[number];
type Resource = Results['resources/read']['_zod']['output']['contents'][number];

/** Answers of an MCP server, as the text that a model reads. All of it is data: bounded, and well-formed Unicode. */
function textOfCall({ content, structuredContent }: CallResult): string {
  if (!content?.length && structuredContent != null) return JSON.stringify(structuredContent);
  return (content ?? []).map(textOfContent).join('\n');
}

function textOfContent({ type, text, resource, uri, name, mimeType, data }: Content): string {
  if (type === 'text') return text ?? '';
  if (type === 'resource' && resource) return textOfResource(resource);
  if (type === 'resource_link') return `[resource ${uri}: ${name}]`;
  return `[${type} ${mimeType ?? 'of unknown type'}, ${data?.length ?? 0} characters of base64]`;
}

function textOfResource({ uri, mimeType, text, blob }: Resource): string {
  return text ?? `[resource ${uri}, ${mimeType ?? 'unknown type'}, ${blob?.length ?? 0} characters of base64]`;
}

/** The beginning of a text that has more than `most` bytes, with a mark that it was cut. */
export function bound(text: string, most: number): string {
  const whole = text.toWellFormed();
  const bytes = Buffer.from(whole);
  if (bytes.length <= most) return whole;
  // A character that the limit cuts in two is left out.
  let end = most;
  while ((bytes[end]! & 0xc0) === 0x80) end -= 1;
  return `${bytes.toString('utf8', 0, end)}\n[cut: these are the first ${most} of ${bytes.length} bytes]`;
}
