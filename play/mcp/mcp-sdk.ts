/** The official SDK, loaded where an agent uses an MCP server: it is no dependency of those that use none. */
import { TemperError } from '../../core/failures.ts';

async function importSdk() {
  const [client, http, types, stdio] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/types.js'),
    import('@modelcontextprotocol/sdk/shared/stdio.js'),
  ]);
  const { CallToolResultSchema, ListResourcesResultSchema, ListToolsResultSchema, ReadResourceResultSchema } = types;
  return {
    Client: client.Client,
    HttpTransport: http.StreamableHTTPClientTransport,
    parseMessage: stdio.deserializeMessage,
    results: {
      'tools/list': ListToolsResultSchema,
      'tools/call': CallToolResultSchema,
      'resources/list': ListResourcesResultSchema,
      'resources/read': ReadResourceResultSchema,
      ping: types.EmptyResultSchema,
    },
  };
}

export type McpSdk = Awaited<ReturnType<typeof importSdk>>;

let loading: Promise<McpSdk> | null = null;

export function loadSdk(): Promise<McpSdk> {
  loading ??= loadMcp(importSdk).catch((cause: unknown) => {
    loading = null;
    throw cause;
  });
  return loading;
}

/** `load` imports modules of the SDK; without the package, the error says what to install. */
export async function loadMcp<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    const rule = 'MCP servers need the package @modelcontextprotocol/sdk, which is not installed';
    throw new TemperError('BadConfig', `${rule}; run npm install @modelcontextprotocol/sdk`, { cause });
  }
}
