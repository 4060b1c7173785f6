/**
 * Answers of a static export: scripts in `data/` put them into a global variable, because a page from a file may fetch
 * nothing. `manifest.js` comes before the page's own script; the others are loaded when they are needed.
 */
import { canMatchGroup, ORDERS, parseAttemptQuery, rowMatcher } from '../views/api/attempt-query.ts';
import type { AttemptsView } from '../views/api/attempt-views.ts';

interface Exported {
  /** Answers by path, as far as their scripts are loaded. */
  readonly answers: Record<string, unknown>;
  /** Number of the script with the answer, by path. */
  readonly places: Readonly<Record<string, number>>;
}

declare global {
  /** Undefined where a server answers. */
  var temperExport: Exported | undefined;
}

const loading = new Map<number, Promise<void>>();
/** Lists that are exported whole, and filtered here. */
const LIST = /^runs\/[^/]+\/(attempts|curve|lanes)\?/;
const DEFAULT_LIMIT = 100;

export const isExport = (): boolean => globalThis.temperExport !== undefined;

export async function readExported(path: string): Promise<unknown> {
  const exact = await readAnswer(path);
  if (exact !== undefined) return exact;
  const [plain = '', query] = path.split('?');
  const list = LIST.test(path) ? await readAnswer(plain) : undefined;
  if (list === undefined) throw new Error(`this export does not contain ${path}; open it in temper ui`);
  return plain.endsWith('/attempts') ? filterRows(list as AttemptsView, new URLSearchParams(query)) : list;
}

async function readAnswer(path: string): Promise<unknown> {
  const { answers, places } = globalThis.temperExport ?? { answers: {}, places: {} };
  if (Object.hasOwn(answers, path)) return answers[path];
  const place = Object.hasOwn(places, path) ? places[path] : undefined;
  if (place === undefined) return undefined;
  await loadScript(place);
  return answers[path];
}

function loadScript(number: number): Promise<void> {
  const known = loading.get(number);
  if (known !== undefined) return known;
  const loaded = new Promise<void>((resolve, reject) => {
    const script = document.createElement('script');
    script.src = `data/${number}.js`;
    script.addEventListener('load', () => resolve());
    script.addEventListener('error', () => {
      loading.delete(number);
      reject(new Error(`data/${number}.js of this export could not be read; copy its whole folder`));
    });
    document.head.append(script);
  });
  loading.set(number, loaded);
  return loaded;
}

/** As a server does. Texts of messages are in no row. */
function filterRows(view: AttemptsView, query: URLSearchParams): AttemptsView {
  if (query.get('text')) throw new Error('this export has no index of messages; search for text in temper ui');
  const asked = parseAttemptQuery(query);
  const matches = rowMatcher(asked);
  const { sort = 'newest', offset = 0, limit = DEFAULT_LIMIT } = asked;
  const rows = view.rows
    .filter((row) => canMatchGroup(asked, { step: row.step, isEval: row.use === 'eval' }) && matches(row))
    .toSorted(ORDERS[sort]);
  const leftOut = view.total - view.rows.length;
  return { ...view, total: rows.length, rows: rows.slice(offset, offset + limit), ...(leftOut > 0 && { leftOut }) };
}
