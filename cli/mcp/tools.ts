/** Tools of `temper mcp`: one for each view, with the parameters of its path and its query. */
import { badConfig } from '../../core/contract/failures.ts';
import type { ViewContext } from '../../views/context/context.ts';
import { VIEW_ROUTES, type ViewRoute } from '../../views/routes/routes.ts';

/** Names by path. */
const NAMES: Readonly<Record<string, string>> = {
  runs: 'list_runs',
  'runs/:run': 'show_run',
  'runs/:run/curve': 'show_curve',
  'runs/:run/agreement': 'show_agreement',
  'runs/:run/lanes': 'show_lanes',
  'runs/:run/checkpoints': 'list_checkpoints',
  'runs/:run/rewards': 'list_awaited_rewards',
  'runs/:run/steps/:step': 'show_step',
  'runs/:run/groups/:group': 'show_group',
  'runs/:run/attempts': 'search_attempts',
  'runs/:run/attempts/:attempt': 'show_attempt',
  'runs/:run/attempts/:attempt/tokens': 'show_tokens',
  'runs/:run/attempts/:attempt/raw': 'show_raw_attempt',
  compare: 'compare_runs',
};

const PARTS: Readonly<Record<string, string>> = {
  run: 'name of the run',
  step: 'number of the step',
  group: 'BRANCH.STEP.GROUP such as 0.3.2, or eval.BRANCH.STEP',
  attempt: 'BRANCH.STEP.GROUP.ATTEMPT such as 0.3.2.5, or eval.BRANCH.STEP.ATTEMPT',
};

/** About 15,000 tokens: an agent reads several of them. */
export const MAX_CHARACTERS = 48_000;

const PAGING = {
  select: {
    type: 'string',
    description: 'only this member of the answer, by its path: attempts.3.turns',
  },
  from: { type: 'integer', minimum: 0, description: 'first character of the answer; default 0' },
} as const;

export interface ViewTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: {
    readonly type: 'object';
    readonly properties: Readonly<Record<string, object>>;
    readonly required: string[];
    readonly additionalProperties: false;
  };
  readonly route: ViewRoute;
}

type Input = Readonly<Record<string, unknown>>;

export const MCP_TOOLS: readonly ViewTool[] = VIEW_ROUTES.map((route) => {
  const parts = partsOf(route);
  const properties = {
    ...Object.fromEntries(parts.map((part) => [part, { type: 'string', description: PARTS[part] ?? part }])),
    ...Object.fromEntries(
      Object.entries(route.query).map(([name, description]) => [
        name,
        { type: ['string', 'number', 'boolean'], description },
      ]),
    ),
    ...PAGING,
  };
  return {
    name: NAMES[route.path] ?? route.path.replaceAll(/[^a-z]+/gi, '_'),
    description: route.about,
    inputSchema: { type: 'object', properties, required: parts, additionalProperties: false },
    route,
  };
});

function partsOf({ path }: ViewRoute): string[] {
  return path.split('/').flatMap((name) => (name.startsWith(':') ? [name.slice(1)] : []));
}

/** JSON, or a part of it that says how to get the next one. */
export async function callTool({ route, inputSchema }: ViewTool, input: Input, views: ViewContext): Promise<string> {
  const unknown = Object.keys(input).find((name) => !Object.hasOwn(inputSchema.properties, name));
  if (unknown !== undefined)
    throw badConfig(`${unknown} is no parameter of this tool, only ${Object.keys(inputSchema.properties).join(', ')}`);
  const given = Object.fromEntries(Object.entries(input).flatMap(([name, value]) => textOf(name, value)));
  const { select, from = '0', ...asked } = given;
  const parts = Object.fromEntries(partsOf(route).map((name) => [name, required(asked, name)]));
  const query = new URLSearchParams(Object.entries(asked).filter(([name]) => !Object.hasOwn(parts, name)));
  const { run } = parts;
  // An agent waits for the answer, and asks once.
  if (run !== undefined && route.path.endsWith('/attempts')) await views.index.update(run);
  const answer = await route.answer(views, parts, query);
  return pageOf(JSON.stringify(select === undefined ? answer : selectMember(answer, select)), Number(from));
}

function textOf(name: string, value: unknown): [string, string][] {
  if (value === null || value === undefined || value === '') return [];
  if (typeof value === 'string') return [[name, value]];
  if (typeof value === 'number' || typeof value === 'boolean') return [[name, String(value)]];
  throw badConfig(`${name} must be text or a number, got ${JSON.stringify(value).slice(0, 80)}`);
}

function required(given: Readonly<Record<string, string>>, name: string): string {
  const value = given[name];
  if (value !== undefined) return value;
  throw badConfig(`${name} is missing (${PARTS[name] ?? name}); pass it`);
}

function selectMember(answer: object, path: string): unknown {
  let value: unknown = answer;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) {
      const members =
        typeof value === 'object' && value !== null ? Object.keys(value).slice(0, 40).join(', ') : 'nothing';
      throw badConfig(`select must name a member of the answer, got ${path}; there is ${members}`);
    }
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}

function pageOf(text: string, from: number): string {
  if (!Number.isSafeInteger(from) || from < 0 || (from > 0 && from >= text.length))
    throw badConfig(`from must be a whole number below ${text.length}, the length of the answer, got ${from}`);
  const end = from + MAX_CHARACTERS;
  if (from === 0 && end >= text.length) return text;
  const next = end >= text.length ? 'the end' : `the rest: from ${end}, or a part of it: select`;
  return `${text.slice(from, end)}\n\n(characters ${from} to ${Math.min(end, text.length)} of ${text.length}; ${next})`;
}
