/** Answers of views by their path, `runs/demo/steps/3?branch=0`: for the server and the export. */
import { decodeEscapes } from '../../../core/text/decode.ts';
import { NotFound, type ViewContext } from '../../../views/context/context.ts';
import { VIEW_ROUTES, type ViewRoute } from '../../../views/routes/routes.ts';
import { HttpRefusal } from '../../../play/transports/http-server.ts';

/** Answers by a path with its query. */
export function askViews(context: ViewContext): (path: string) => Promise<object> {
  return (path) => {
    const [plain = '', query] = path.split('?');
    return answerView(context, plain, new URLSearchParams(query));
  };
}

interface Found {
  readonly route: ViewRoute;
  readonly parts: Readonly<Record<string, string>>;
}

/** `path`: below `/api/`, without the query. */
export async function answerView(context: ViewContext, path: string, query: URLSearchParams): Promise<object> {
  const found = findView(path);
  if (found === null) throw new NotFound(`there is no endpoint ${path.slice(0, 80)}; see docs/ui-api.md`);
  const { route, parts } = found;
  const unknown = [...query.keys()].find((name) => !Object.hasOwn(route.query, name));
  if (unknown !== undefined) {
    const known = Object.keys(route.query);
    const takes = known.length === 0 ? 'takes no parameters' : `takes ${known.join(', ')}`;
    throw new HttpRefusal(422, `${route.path} ${takes}, not ${unknown.slice(0, 80)}; remove it`, 'unknown_parameter');
  }
  return route.answer(context, parts, query);
}

function findView(path: string): Found | null {
  const given = path.split('/').map(decodeEscapes);
  for (const route of VIEW_ROUTES) {
    const parts = matchParts(route.path.split('/'), given);
    if (parts !== null) return { route, parts };
  }
  return null;
}

function matchParts(names: readonly string[], given: readonly string[]): Record<string, string> | null {
  if (names.length !== given.length) return null;
  const parts: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const value = given[index]!;
    if (name.startsWith(':') && value !== '') parts[name.slice(1)] = value;
    else if (name !== value) return null;
  }
  return parts;
}
