/** The official SDK, loaded where an agent uses an MCP server: it is no dependency of those that use none. */
import { z } from 'zod';

import { badConfig } from '../../core/contract/failures.ts';

const Text = z.string().nullish();
const Resource = z.looseObject({ uri: Text, mimeType: Text, text: Text, blob: Text });
const ListedResource = z.looseObject({
  uri: z.string(),
  name: z.string().catch(''),
  description: z.string().optional().catch(undefined),
});
const Content = Resource.extend({ type: z.string(), name: Text, data: Text, resource: Resource.nullish() });

/** What is read of answers. Their other members may be anything, and null is none: the SDK's own schemas refuse both. */
const RESULTS = {
  // A tool is checked once it is taken.
  'tools/list': z.looseObject({ nextCursor: Text, tools: z.array(z.looseObject({}).catch({})) }),
  'tools/call': z.looseObject({ content: z.array(Content).nullish() }),
  'resources/list': z.looseObject({ nextCursor: Text, resources: z.array(ListedResource) }),
  'resources/read': z.looseObject({ contents: z.array(Resource) }),
  ping: z.looseObject({}),
};

async function importSdk() {
  const [client, http, stdio] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/shared/stdio.js'),
  ]);
  return {
    Client: client.Client,
    HttpTransport: http.StreamableHTTPClientTransport,
    parseMessage: stdio.deserializeMessage,
    results: RESULTS,
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
    throw badConfig(`${rule}; run npm install @modelcontextprotocol/sdk`, { cause });
  }
}
