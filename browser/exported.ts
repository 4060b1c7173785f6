/**
 * Answers of an export, because a page from a file may fetch nothing. A single file has them all in an element. A site has
 * scripts in `data/` that put them into a global variable: `manifest.js` comes before the page's own script; the others
 * are loaded when they are needed.
 */
import { filterRows, parseAttemptQuery } from '../views/api/attempt-query.ts';
import type { AttemptsView, AttemptView, GroupView } from '../views/api/attempt-views.ts';

interface Exported {
  /** Answers by path, as far as their scripts are loaded. */
  readonly answers: Record<string, unknown>;
  /** Number of the script with the answer, by path; absent: all are here. */
  readonly places?: Readonly<Record<string, number>>;
  /** Place at which it opens; absent: the list of runs. */
  readonly home?: string;
}

declare global {
  /** Undefined where a server answers, and in a single file. */
  var temperExport: Exported | undefined;
}

const embedded = document.getElementById('answers')?.textContent ?? null;
const exported = embedded === null ? globalThis.temperExport : (JSON.parse(embedded) as Exported);

const loading = new Map<number, Promise<void>>();
/** Lists that are exported whole, and filtered here. */
const LIST = /^runs\/[^/]+\/(attempts|curve|lanes)\?/;
const ATTEMPT = /^(runs\/[^/]+)\/attempts\/([^/]+)\.\d+$/;

export const isExport = (): boolean => exported !== undefined;

export const homePlace = (): string => exported?.home ?? '/';

export async function readExported(path: string): Promise<unknown> {
  const exact = (await readAnswer(path)) ?? (await findInGroup(path));
  if (exact !== undefined) return exact;
  const [plain = '', query] = path.split('?');
  const list = LIST.test(path) ? await readAnswer(plain) : undefined;
  if (list === undefined) throw new Error(`this export does not contain ${path}; open it in temper ui`);
  if (!plain.endsWith('/attempts')) return list;
  return filterRows(list as AttemptsView, parseAttemptQuery(new URLSearchParams(query)));
}

async function readAnswer(path: string): Promise<unknown> {
  const { answers, places = {} } = exported ?? { answers: {} };
  if (Object.hasOwn(answers, path)) return answers[path];
  const place = Object.hasOwn(places, path) ? places[path] : undefined;
  if (place === undefined) return undefined;
  await loadScript(place);
  return answers[path];
}

/** A single file has attempts in their groups alone. */
async function findInGroup(path: string): Promise<AttemptView | undefined> {
  const [, run, group] = ATTEMPT.exec(path) ?? [];
  const found = run === undefined ? undefined : ((await readAnswer(`${run}/groups/${group}`)) as GroupView | undefined);
  return found?.attempts.find(({ row }) => path === `${run}/attempts/${row.id}`);
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
