/** Scroll positions by entry of the browser's history: Back shows a page and its tables where they were left. */
import { useEffect } from 'preact/hooks';

/** Pixels by what was scrolled. */
type Positions = Map<string, number>;

const PAGE = 'page';
/** Data of a page may have to come first. */
const MOST_FRAMES = 240;
const OWN_MOVES = ['wheel', 'touchstart', 'pointerdown', 'keydown'] as const;

const known = new Map<string, Positions>();
let entry = '';
let path = '';
/** Positions that are being set. Until then, others come from pages that are not complete yet. */
let wanted: Positions | null = null;

export function useScrollPlaces(): void {
  useEffect(() => {
    history.scrollRestoration = 'manual';
    [entry, path] = [entryNow() ?? addEntry(), pathNow()];
    addEventListener('scroll', remember, { capture: true, passive: true });
    // Before `hashchange` draws the next page: the event of the last scrolling may come after both.
    addEventListener('popstate', remember);
    addEventListener('hashchange', arrive);
    for (const move of OWN_MOVES) addEventListener(move, giveUp, { passive: true });
    return () => {
      removeEventListener('scroll', remember, { capture: true });
      removeEventListener('popstate', remember);
      removeEventListener('hashchange', arrive);
      for (const move of OWN_MOVES) removeEventListener(move, giveUp);
    };
  }, []);
}

const pathNow = (): string => location.hash.split('?')[0]!;

/** Null: the entry is new. */
function entryNow(): string | null {
  const { scrollEntry } = (history.state ?? {}) as { scrollEntry?: unknown };
  return typeof scrollEntry === 'string' && known.has(scrollEntry) ? scrollEntry : null;
}

/** Entries of before a reload keep their state, and must not be taken for others. */
function addEntry(positions: Positions = new Map()): string {
  const added = `${performance.timeOrigin} ${known.size}`;
  known.set(added, positions);
  history.replaceState({ scrollEntry: added }, '');
  return added;
}

function arrive(): void {
  const before = { entry, path };
  const again = entryNow();
  path = pathNow();
  // Another filter or tab of the same page: what was scrolled stays where it is.
  entry = again ?? addEntry(path === before.path ? new Map(known.get(before.entry)) : new Map());
  if (path === before.path) return;
  wanted = new Map([[PAGE, 0], ...known.get(entry)!]);
  restore(MOST_FRAMES);
}

function remember({ target }: Event): void {
  if (wanted !== null) return;
  const { name, element } = scrolled(target);
  if (element !== null) known.get(entry)?.set(name, element.scrollTop);
}

function scrolled(target: EventTarget | null): { name: string; element: Element | null } {
  if (target instanceof Element) return { name: target.getAttribute('aria-label') ?? '', element: target };
  return { name: PAGE, element: document.scrollingElement };
}

function restore(frames: number): void {
  requestAnimationFrame(() => {
    if (wanted === null) return;
    const isDone = [...wanted].filter(([name, top]) => !scrollTo(name, top)).length === 0;
    if (isDone || frames === 0) wanted = null;
    else restore(frames - 1);
  });
}

/** False: it is not there, or not tall enough yet. */
function scrollTo(name: string, top: number): boolean {
  const found =
    name === PAGE ? document.scrollingElement : document.querySelector(`main [aria-label="${CSS.escape(name)}"]`);
  if (found === null) return false;
  found.scrollTop = top;
  return Math.abs(found.scrollTop - top) < 1;
}

/** A person who scrolls meanwhile keeps that place. */
function giveUp(): void {
  wanted = null;
}
