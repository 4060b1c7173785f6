/** Source of scenarios: a task in one sentence, or an MCP server as it was listed. */
import { badConfig } from '../../core/contract/failures.ts';
import { listResources } from '../../play/mcp/ask-tool.ts';
import { toolServerKey } from '../../store/layout.ts';
import { decodeJson, encodeJson } from '../../store/bytes/json.ts';
import type { Store } from '../../store/store.ts';
import { tryToolServer } from '../../sdk/mcp/check-tool-server.ts';
import { parseOptions, type McpCommandOptions, type McpUrlOptions } from '../../sdk/mcp/mcp-options.ts';

export type McpOptions = McpCommandOptions | McpUrlOptions;

/** Tools and resources that scenarios are written for. */
export interface ToolServerFacts {
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly parameters: Record<string, unknown>;
  }[];
  readonly resources: readonly { readonly uri: string; readonly name: string; readonly description?: string }[];
  /** No tool changes anything: attempts can share a process. */
  readonly isReadOnly: boolean;
}

export type ScenarioOrigin =
  | { readonly kind: 'task'; readonly task: string }
  | { readonly kind: 'mcp'; readonly options: McpOptions; readonly server: ToolServerFacts };

/** A server that its package manager may have to download first. */
export const START_TIMEOUT_MS = 120_000;

export interface McpFlags {
  /** Name of the flag, for messages. */
  readonly flag: string;
  /** A command line or a URL. */
  readonly place: string;
  /** Names of tools; null: all, and the resources. */
  readonly only: readonly string[] | null;
  /** Variables for the server: passed on to a command, the bearer token of a URL. */
  readonly env: readonly string[];
}

/** Options of `mcp`, as an agent's file writes them. */
export function parseMcp({ flag, place, only, env }: McpFlags): McpOptions {
  const taken = only === null ? { resources: true } : { only };
  if (/^https?:\/\//.test(place)) {
    const [keyVariable, ...others] = env;
    if (others.length > 0)
      throw badConfig('--mcp-env names one variable for a URL, its bearer token, got several; pass one of them');
    return { url: place, ...taken, ...(keyVariable !== undefined && { keyVariable }) };
  }
  const [command, ...args] = splitWords(flag, place);
  if (command === undefined)
    throw badConfig(`${flag} must be a command or a URL, got none; pass 'npx -y SERVER' or http://HOST/mcp`);
  return { command, args, ...(env.length > 0 && { env }), ...taken };
}

const PART = /(\s+)|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^\s'"\\]+)|./gs;

/** Words as a shell splits them, with quotes and backslashes, and nothing else of a shell. */
export function splitWords(flag: string, line: string): string[] {
  const words: string[] = [];
  let isOpen = false;
  for (const [, space, single, double, escaped, plain] of line.matchAll(PART)) {
    const part = single ?? double?.replaceAll(/\\(["\\])/g, '$1') ?? escaped ?? plain;
    if (part === undefined && space === undefined)
      throw badConfig(`${flag} must be a command line with closed quotes, got ${line}; close them`);
    if (part !== undefined) words.push(isOpen ? `${words.pop() ?? ''}${part}` : part);
    isOpen = part !== undefined;
  }
  return words;
}

/** Tools and resources as the server first listed them: the same in every continuation of this work. */
export async function readToolServer(
  options: McpOptions,
  { store, work, folder }: { store: Store; work: string; folder: string },
): Promise<ToolServerFacts> {
  const key = toolServerKey(work);
  const known = await store.read(key);
  const bytes =
    known ?? (await store.publish(key, encodeJson({ schema: 1, ...(await askServer(options, folder)) }))).bytes;
  return decodeJson(bytes, key) as ToolServerFacts;
}

async function askServer(options: McpOptions, folder: string): Promise<ToolServerFacts> {
  const settings = parseOptions({ ...options, startTimeoutMs: START_TIMEOUT_MS });
  const read: Parameters<typeof tryToolServer<ToolServerFacts>>[2] = async (tools, connection) => {
    const asked = settings.selection.resources && connection.offers('resources');
    // A server that lists its tools is of use without its resources.
    const resources = asked ? await listResources(connection).catch(() => []) : [];
    return {
      tools: tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
      resources: resources.map(({ uri, name, description }) => ({
        uri,
        name,
        ...(description !== undefined && { description }),
      })),
      isReadOnly: tools.every(({ isReadOnly }) => isReadOnly),
    };
  };
  return tryToolServer(settings, folder, read, 'correct its command line or its URL');
}
