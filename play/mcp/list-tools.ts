/** Tools that an MCP server offers: plain data, which the journal of an attempt keeps. */
import { z } from 'zod';
import { firstIssue } from '../../core/contract/contract.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import type { Connection } from './connection.ts';
import { describeServer, type ServerSpec } from './server-spec.ts';
import { CallFailed } from './server-errors.ts';

/** How a call of a tool reaches the server. */
export type ToolMethod = 'tools/call' | 'resources/list' | 'resources/read';

export interface ListedTool {
  /** The name that the model sees. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema. */
  readonly parameters: Record<string, unknown>;
  readonly method: ToolMethod;
  /** The server's name for it. */
  readonly original: string;
  /** The server says that it changes nothing. */
  readonly isReadOnly: boolean;
  /** The server says that to call it twice is to call it once. */
  readonly isIdempotent: boolean;
}

export interface ToolSelection {
  readonly prefix: string;
  /** The server's names of the tools that are taken; null: all. */
  readonly only: readonly string[] | null;
  /** With tools for its resources. */
  readonly resources: boolean;
}

const MAX_LIST_BYTES = 1024 ** 2;
const MAX_NAME = 64;

const RESOURCE_TOOLS: readonly ListedTool[] = [
  readOnly('resources/list', 'list_resources', 'Lists the resources of the server, with their URIs.', {}),
  readOnly('resources/read', 'read_resource', 'Returns the content of a resource.', {
    uri: { type: 'string', description: 'its URI' },
  }),
];

function readOnly(method: ToolMethod, name: string, description: string, properties: object): ListedTool {
  const parameters = { type: 'object', properties, required: Object.keys(properties) };
  return { name, description, parameters, method, original: name, isReadOnly: true, isIdempotent: true };
}

/** A tool as the server wrote it: unchecked. */
interface GivenTool {
  readonly name?: unknown;
  readonly execution?: { readonly taskSupport?: unknown } | null;
}

/** What Temper needs of a tool that is taken: it may have any other members, and its schema any properties. */
const TakenTool = z.looseObject({
  name: z.string(),
  description: z.string().nullish(),
  inputSchema: z.looseObject({ type: z.literal('object') }),
  annotations: z.looseObject({}).nullish().catch(null),
});

export async function listTools(
  connection: Connection,
  spec: ServerSpec,
  selection: ToolSelection,
): Promise<ListedTool[]> {
  const own = connection.offers('tools') ? await listOwn(connection) : [];
  const { only, prefix } = selection;
  const missing = only?.find((wanted) => own.every(({ name }) => name !== wanted));
  if (missing !== undefined)
    throw bad(spec, `has no tool ${JSON.stringify(missing)}, which only of mcp names; it has ${named(own)}`);
  const taken = only === null ? own : own.filter(({ name }) => only.includes(name as string));
  const all = [
    ...taken.map((tool, index) => toListed(tool, index, spec)),
    ...(selection.resources && connection.offers('resources') ? RESOURCE_TOOLS : []),
  ];
  if (all.length === 0) throw bad(spec, 'offers no tools; pass resources: true if it has resources');
  const tools = all.map((each) => ({ ...each, name: asName(prefix + each.name) }));
  const names = tools.map(({ name }) => name);
  const twice = tools.find(({ name }, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    const isListedTwice = tools.filter(({ original }) => original === twice.original).length > 1;
    const remedy = isListedTwice ? 'correct the server, or leave both out' : 'take one of them';
    throw bad(spec, `has two tools of the name ${twice.name}; ${remedy} by only: […] of mcp`);
  }
  if (Buffer.byteLength(JSON.stringify(tools)) > MAX_LIST_BYTES)
    throw bad(spec, `describes its tools in more than ${MAX_LIST_BYTES} bytes; take some of them by only: […] of mcp`);
  return tools;
}

async function listOwn(connection: Connection): Promise<GivenTool[]> {
  const tools = await readList<{ tools: GivenTool[]; nextCursor?: string | null | undefined }, GivenTool>(
    (asked) => connection.ask('tools/list', asked),
    (page) => page.tools,
  );
  // Others answer by a task that their client asks for later, which a conversation has no place for.
  return tools.filter(({ execution }) => execution?.taskSupport !== 'required');
}

/** `index` among those that are taken. */
function toListed(tool: GivenTool, index: number, spec: ServerSpec): ListedTool {
  const { data, error } = TakenTool.safeParse(tool);
  if (error !== undefined) {
    const which = typeof tool.name === 'string' ? tool.name : `number ${index + 1}, which has no name`;
    const rule = `must describe its tool ${which} as the protocol has it, but does not (${firstIssue(error)})`;
    throw bad(spec, `${rule}; correct the server, or take other tools by only: […] of mcp`);
  }
  const { name, description, inputSchema, annotations } = data;
  const { $schema: _, ...parameters } = inputSchema;
  return {
    name,
    description: (description ?? '').toWellFormed(),
    parameters,
    method: 'tools/call',
    original: name,
    isReadOnly: annotations?.['readOnlyHint'] === true,
    isIdempotent: annotations?.['idempotentHint'] === true,
  };
}

/** Names of MCP may have dots and slashes, and be longer. */
function asName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME);
}

function named(tools: readonly GivenTool[]): string {
  const names = tools.filter(({ name }) => typeof name === 'string').map(({ name }) => name);
  return names.join(', ').slice(0, 500) || 'none';
}

function bad(spec: ServerSpec, rule: string): TemperError {
  return badConfig(`${describeServer(spec)} ${rule}`);
}

const MAX_PAGES = 100;
const MAX_ITEMS = 1000;

/** A list that has no end is cut off; one that leads back to its own pages is refused. */
export async function readList<Page extends { readonly nextCursor?: string | null | undefined }, Item>(
  ask: (asked: { cursor?: string }) => Promise<Page>,
  itemsOf: (page: Page) => readonly Item[],
): Promise<Item[]> {
  const items: Item[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES && items.length < MAX_ITEMS; page++) {
    const answer = await ask(cursor === undefined ? {} : { cursor });
    for (const item of itemsOf(answer)) items.push(item);
    // Servers in languages without an absent text end a list by an empty one.
    if (!answer.nextCursor) break;
    cursor = answer.nextCursor;
    if (cursors.has(cursor))
      throw new CallFailed(`its list has the nextCursor ${JSON.stringify(cursor.slice(0, 80))} twice, and so no end`);
    cursors.add(cursor);
  }
  return items;
}
