/** Options of `mcp`, checked when an agent's file is loaded. */
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import type { ToolSelection } from '../../play/mcp/list-tools.ts';
import type { ServerSpec } from '../../play/mcp/server-spec.ts';
import { checkCount, checkOptions } from '../options/check-options.ts';

export interface McpLimits {
  /** A process, or a session, for each attempt: for servers that have state. By default a worker has one for all. */
  readonly isolate?: boolean;
  /**
   * For an isolated server whose whole state is in its process: if it is started again in the middle of an attempt, the
   * calls that were made so far are made again there. By default the model is told that the state may be lost.
   */
  readonly replay?: boolean;
  /** Before the name of each tool: `'files_'`. */
  readonly prefix?: string;
  /** The server's names of the tools that are taken; by default all. */
  readonly only?: readonly string[];
  /** Adds tools that list and read the server's resources. */
  readonly resources?: boolean;
  /** Bytes of a result, the rest is cut; 100,000. */
  readonly maxResultBytes?: number;
  /** Until the server has answered `initialize`; 30,000. */
  readonly startTimeoutMs?: number;
  /** Time of one call; 60,000. */
  readonly callTimeoutMs?: number;
  /** A shared server that no attempt uses is ended after that time; 300,000. */
  readonly idleMs?: number;
}

export interface McpCommandOptions extends McpLimits {
  /** The program, started in the folder of the agent's file. */
  readonly command: string;
  readonly args?: readonly string[];
  /** Names of environment variables that are passed on, for secrets; or texts by name. */
  readonly env?: readonly string[] | Readonly<Record<string, string>>;
}

export interface McpUrlOptions extends McpLimits {
  /** Endpoint for streamable HTTP. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The environment variable that holds a bearer token. */
  readonly keyVariable?: string;
}

export interface ServerSettings {
  readonly spec: ServerSpec;
  readonly selection: ToolSelection;
  readonly replay: boolean;
  readonly maxResultBytes: number;
}

const PREFIX = /^[A-Za-z0-9_-]{0,32}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function parseOptions(options: McpCommandOptions | McpUrlOptions): ServerSettings {
  const { url, headers, keyVariable } = (options ?? {}) as Partial<McpUrlOptions>;
  const isUrl = [url, headers, keyVariable].some((given) => given !== undefined);
  const limits = checkLimits(checkOptions(isUrl ? 'mcp.url' : 'mcp', options));
  const { only, prefix = '', resources = false, replay = false, maxResultBytes = 100_000 } = limits;
  const place = isUrl ? parseUrl(options as McpUrlOptions) : parseCommand(options as McpCommandOptions);
  return {
    spec: { ...place, ...parseLife(limits) },
    selection: { prefix, only: only === undefined ? null : [...only], resources },
    replay,
    maxResultBytes,
  };
}

function parseLife(limits: McpLimits) {
  const { isolate = false, replay = false } = limits;
  const { startTimeoutMs = 30_000, callTimeoutMs = 60_000, idleMs = 300_000 } = limits;
  if (replay && !isolate) throw bad('replay of mcp has no effect without isolate', replay, 'pass isolate: true');
  return { isolate, startTimeoutMs, callTimeoutMs, idleMs };
}

function checkLimits(options: McpLimits): McpLimits {
  const { prefix = '', only, isolate, replay, resources } = options;
  const { startTimeoutMs, callTimeoutMs, idleMs, maxResultBytes } = options;
  for (const [name, value] of Object.entries({ isolate, replay, resources }))
    if (value !== undefined && typeof value !== 'boolean')
      throw bad(`${name} of mcp must be true or false`, value, `pass { ${name}: true }`);
  if (typeof prefix !== 'string' || !PREFIX.test(prefix))
    throw bad(`prefix of mcp must match ${PREFIX.source}`, prefix, "pass 'files_'");
  if (only !== undefined && (!isTexts(only) || only.length === 0))
    throw bad('only of mcp must be a list of names of tools', only, "pass ['read_file']");
  checkCount('startTimeoutMs of mcp', startTimeoutMs, { least: 1, example: 30_000 });
  checkCount('callTimeoutMs of mcp', callTimeoutMs, { least: 1, example: 60_000 });
  checkCount('idleMs of mcp', idleMs, { least: 1, example: 300_000 });
  checkCount('maxResultBytes of mcp', maxResultBytes, { least: 100, example: 100_000 });
  return options;
}

function parseCommand({ command, args = [], env = {} }: McpCommandOptions) {
  if (typeof command !== 'string' || command === '' || command.includes('\0'))
    throw bad('command of mcp must be the name of a program', command, "pass 'npx', and the rest as args");
  if (!isTexts(args)) throw bad('args of mcp must be a list of texts', args, "pass ['-y', 'some-server']");
  return { kind: 'command', command, args: [...args], ...parseEnvironment(env) } as const;
}

function parseEnvironment(env: unknown): { passed: string[]; env: Record<string, string> } {
  if (isNamesOfVariables(env)) return { passed: [...env], env: {} };
  if (isTextsByName(env)) return { passed: [], env: { ...env } };
  throw bad('env of mcp must be names of variables, or texts by name', '…', "pass ['GITHUB_TOKEN']");
}

function parseUrl({ url, headers = {}, keyVariable }: McpUrlOptions) {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.username !== '' || parsed.password !== '')
    throw bad('url of mcp must be an http(s) URL without a password', url, "pass 'http://127.0.0.1:3001/mcp'");
  if (!areHeaders(headers)) throw bad('headers of mcp must be texts by name', '…', "pass { 'x-team': 'red' }");
  if (keyVariable !== undefined && !isNamesOfVariables([keyVariable]))
    throw bad('keyVariable of mcp must be the name of a variable', '…', "pass 'GITHUB_TOKEN'");
  return { kind: 'url', url: parsed.href, headers: { ...headers }, keyVariable: keyVariable ?? null } as const;
}

function areHeaders(headers: unknown): boolean {
  if (!isTextsByName(headers)) return false;
  try {
    new Headers(headers).keys();
    return true;
  } catch {
    // It has a name or a value that HTTP does not allow.
    return false;
  }
}

function isTextsByName(value: unknown): value is Readonly<Record<string, string>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && isTexts(Object.values(value));
}

function isNamesOfVariables(value: unknown): value is readonly string[] {
  return isTexts(value) && value.every((name) => VARIABLE.test(name));
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && !each.includes('\0'));
}

/** Values that may be secret are not shown. */
function bad(rule: string, value: unknown, remedy: string): TemperError {
  const shown = (JSON.stringify(value) ?? String(value)).slice(0, 100);
  return badConfig(`${rule}, got ${shown}; ${remedy}`);
}
