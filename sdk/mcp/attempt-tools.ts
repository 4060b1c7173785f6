/** The tools of an MCP server in one attempt: their list and their results are journaled, whoever calls them. */
import { badConfig } from '../../core/contract/failures.ts';
import { attemptHooks, type AttemptHooks } from '../../play/attempt-hooks.ts';
import { sameName } from '../../play/mcp/tool-server.ts';
import { describeFailedCall, type Once } from '../tools/run-call.ts';
import { asObject, tool, type Tool } from '../tools/tool.ts';
import { AttemptCalls, identityOf, type CallOutcome, type McpContext } from './attempt-calls.ts';
import type { ServerSettings } from './mcp-options.ts';

/** A tool for `toolLoop`, and what other SDKs make a tool of their own form from. */
export interface McpTool extends Tool {
  readonly description: string;
  /** JSON Schema. */
  readonly parameters: Record<string, unknown>;
  /** Calls the tool; an error of it is a text for the model, too. */
  readonly text: (args: unknown) => Promise<string>;
}

interface AttemptServers {
  readonly hooks: AttemptHooks | null;
  readonly tools: Map<ServerSettings, Promise<McpTool[]>>;
  /** How many servers have a label. */
  readonly labels: Map<string, number>;
  readonly names: Set<string>;
}

/** Servers of each attempt, found by its `once`, which no other attempt has. */
const attempts = new WeakMap<Once, AttemptServers>();

export function toolsOfAttempt(settings: ServerSettings, context: McpContext): Promise<McpTool[]> {
  const { once, signal } = (context ?? {}) as Partial<McpContext>;
  if (once === undefined || signal === undefined)
    throw badConfig("tools of an MCP server needs the attempt's context; pass on what rollout got");
  const servers = attempts.get(once) ?? {
    hooks: attemptHooks(context),
    tools: new Map(),
    labels: new Map(),
    names: new Set(),
  };
  signal.throwIfAborted();
  attempts.set(once, servers);
  const found = servers.tools.get(settings) ?? open(settings, { once, signal }, servers);
  servers.tools.set(settings, found);
  return found;
}

async function open(settings: ServerSettings, context: McpContext, servers: AttemptServers): Promise<McpTool[]> {
  const { hooks, labels, names } = servers;
  const calls = new AttemptCalls(settings, { ...context, hooks, number: numberOf(settings, labels) });
  const listed = await calls.list();
  for (const { name } of listed) {
    if (names.has(name)) throw calls.refuse(sameName('servers of one attempt', name));
    names.add(name);
  }
  return listed.map((each) => {
    const { name, description, parameters } = each;
    const run = (args: unknown): Promise<CallOutcome> => calls.call(each, asObject(args));
    const made = tool({ name, description, parameters, run: async (args) => textOrThrow(await run(args)) });
    return { ...made, description, parameters, text: async (args: unknown) => textOf(await run(args)) };
  });
}

/** Two servers of one kind are told apart by the order in which the attempt asks for them. */
function numberOf(settings: ServerSettings, labels: Map<string, number>): number {
  const label = identityOf(settings);
  const number = (labels.get(label) ?? 0) + 1;
  labels.set(label, number);
  return number;
}

function textOrThrow({ text, failed }: CallOutcome): string {
  if (failed) throw new Error(text);
  return text;
}

function textOf({ text, failed }: CallOutcome): string {
  return failed ? describeFailedCall(text) : text;
}
