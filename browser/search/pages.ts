/** Rows of a search, loaded as they come in sight. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { AttemptRow, AttemptsView } from '../../views/api/attempt-views.ts';
import { getJson } from '../data.ts';

export const PAGE_ROWS = 200;
/** A table of more rows would be too tall for a browser. */
const MOST_ROWS = 300_000;

interface Pages {
  readonly rows: readonly (AttemptRow | undefined)[];
  readonly excerpts: Readonly<Record<string, string>>;
}

/** `first` is the first page; the others are fetched when `range` reaches them. */
export function usePages(base: string, first: AttemptsView | null, range: readonly [number, number]): Pages {
  const pages = useRef(new Map<number, AttemptsView | null>());
  const [version, setVersion] = useState(0);
  // Another search, or a run that grew: pages of before do not fit.
  const key = `${base} ${first?.total}`;
  const known = useRef(key);
  if (known.current !== key) {
    known.current = key;
    pages.current = new Map();
  }
  if (first !== null) pages.current.set(0, first);
  useEffect(() => {
    const load = async (page: number): Promise<void> => {
      pages.current.set(page, null);
      const of = pages.current;
      try {
        of.set(page, await getJson<AttemptsView>(`${base}&offset=${page * PAGE_ROWS}&limit=${PAGE_ROWS}`));
      } catch {
        // Asked again when it comes in sight again; the first page says what is wrong.
        of.delete(page);
      }
      setVersion((before) => before + 1);
    };
    const last = Math.floor(Math.min(range[1], (first?.total ?? 1) - 1) / PAGE_ROWS);
    for (let page = Math.floor(range[0] / PAGE_ROWS); page <= last; page++)
      if (!pages.current.has(page)) void load(page);
  }, [key, range[0], range[1]]);
  return useMemo(() => joinPages(pages.current, first), [key, version, first]);
}

function joinPages(pages: ReadonlyMap<number, AttemptsView | null>, first: AttemptsView | null): Pages {
  const rows = Array.from<AttemptRow | undefined>({ length: Math.min(first?.total ?? 0, MOST_ROWS) });
  const excerpts: Record<string, string> = {};
  for (const [page, view] of pages) {
    view?.rows.forEach((row, at) => {
      if (page * PAGE_ROWS + at < rows.length) rows[page * PAGE_ROWS + at] = row;
    });
    Object.assign(excerpts, view?.excerpts);
  }
  return { rows, excerpts };
}
