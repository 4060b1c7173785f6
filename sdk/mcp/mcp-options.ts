/** Options of `mcp`, checked when an agent's file is loaded. */
import type { ToolSelection } from '../../play/mcp/list-tools.ts';
import type { ServerSpec } from '../../play/mcp/server-spec.ts';
import { type Shape, areTexts, areTextsByName, flag, isText, must, takes, whole } from '../options/options.ts';

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
const hidden = (): string => '…';

const LIMITS: Shape<McpLimits> = {
  isolate: flag.optional(),
  replay: flag.optional(),
  prefix: must(
    `text that matches ${PREFIX.source}`,
    (value) => typeof value === 'string' && PREFIX.test(value),
    "pass 'files_'",
  ).optional(),
  only: must(
    'a list of names of tools',
    (value) => areTexts(value) && value.length > 0,
    "pass ['read_file']",
  ).optional(),
  resources: flag.optional(),
  maxResultBytes: whole(100, 'pass 100000').optional(),
  startTimeoutMs: whole(1, 'pass 30000').optional(),
  callTimeoutMs: whole(1, 'pass 60000').optional(),
  idleMs: whole(1, 'pass 300000').optional(),
};

const RULES = {
  rules: [
    ({ isolate = false, replay = false }: McpLimits) =>
      replay && !isolate ? 'replay of mcp has no effect without isolate; pass isolate: true' : null,
  ],
};

const checkCommand = takes<McpCommandOptions>(
  'mcp',
  {
    command: must(
      'the name of a program',
      (value) => isText(value) && !value.includes('\0'),
      "pass 'npx', and the rest as args",
    ),
    args: must('a list of texts', areTexts, "pass ['-y', 'some-server']").optional(),
    env: must(
      'names of variables, or texts by name',
      (value) => areVariables(value) || areTextsByName(value),
      "pass ['GITHUB_TOKEN']",
      hidden,
    ).optional(),
    ...LIMITS,
  },
  RULES,
);

const checkUrl = takes<McpUrlOptions>(
  'mcp',
  {
    url: must('an http(s) URL without a password', isAddress, "pass 'http://127.0.0.1:3001/mcp'"),
    headers: must('texts by name', areHeaders, "pass { 'x-team': 'red' }", hidden).optional(),
    keyVariable: must(
      'the name of a variable',
      (value) => areVariables([value]),
      "pass 'GITHUB_TOKEN'",
      hidden,
    ).optional(),
    ...LIMITS,
  },
  RULES,
);

export function parseOptions(options: McpCommandOptions | McpUrlOptions): ServerSettings {
  const { url, headers, keyVariable } = (options ?? {}) as Partial<McpUrlOptions>;
  const isUrl = [url, headers, keyVariable].some((given) => given !== undefined);
  const place = isUrl ? parseUrl(options as McpUrlOptions) : parseCommand(options as McpCommandOptions);
  const { only, prefix = '', resources = false, replay = false, maxResultBytes = 100_000 } = options;
  const { isolate = false, startTimeoutMs = 30_000, callTimeoutMs = 60_000, idleMs = 300_000 } = options;
  return {
    spec: { ...place, isolate, startTimeoutMs, callTimeoutMs, idleMs },
    selection: { prefix, only: only === undefined ? null : [...only], resources },
    replay,
    maxResultBytes,
  };
}

function parseCommand(options: McpCommandOptions) {
  const { command, args = [], env = {} } = checkCommand(options);
  const variables = areVariables(env) ? { passed: [...env], env: {} } : { passed: [], env: { ...env } };
  return { kind: 'command', command, args: [...args], ...variables } as const;
}

function parseUrl(options: McpUrlOptions) {
  const { url, headers = {}, keyVariable = null } = checkUrl(options);
  return { kind: 'url', url: new URL(url).href, headers: { ...headers }, keyVariable } as const;
}

function isAddress(value: unknown): boolean {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null;
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
}

function areHeaders(headers: unknown): boolean {
  if (!areTextsByName(headers)) return false;
  try {
    new Headers(headers).keys();
    return true;
  } catch {
    // It has a name or a value that HTTP does not allow.
    return false;
  }
}

function areVariables(value: unknown): value is readonly string[] {
  return areTexts(value) && value.every((name) => VARIABLE.test(name));
}
