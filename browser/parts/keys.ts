/** Keys of the pages: one listener, and a list of what they do for the help. */
import { useLayoutEffect, useRef } from 'preact/hooks';

export interface KeyBinding {
  /** `j`, `[`, `?`, or two keys one after the other: `g r`. */
  readonly keys: string;
  /** For the help. */
  readonly label: string;
  readonly run: () => void;
}

const lists: { current: readonly KeyBinding[] }[] = [];
const SEQUENCE_MS = 1200;
let first: { readonly key: string; readonly at: number } | null = null;
let isListening = false;

/** Those of the shown parts, the innermost first. */
export function activeBindings(): KeyBinding[] {
  const seen = new Set<string>();
  return lists
    .toReversed()
    .flatMap(({ current }) => current)
    .filter(({ keys }) => !seen.has(keys) && seen.add(keys));
}

/** Active as soon and as long as the part is shown; a later part's binding of the same key wins. */
export function useKeys(bindings: readonly KeyBinding[]): void {
  const list = useRef(bindings);
  list.current = bindings;
  useLayoutEffect(() => {
    listen();
    lists.push(list);
    return () => void lists.splice(lists.indexOf(list), 1);
  }, []);
}

function listen(): void {
  if (isListening) return;
  isListening = true;
  addEventListener('keydown', takeKey);
}

function takeKey(event: KeyboardEvent): void {
  if (isForOthers(event)) return;
  const started = first !== null && event.timeStamp - first.at < SEQUENCE_MS ? `${first.key} ${event.key}` : null;
  const all = activeBindings();
  const found = all.find(({ keys }) => keys === started) ?? all.find(({ keys }) => keys === event.key);
  const isStart = all.some(({ keys }) => keys.startsWith(`${event.key} `));
  first = found === undefined && isStart ? { key: event.key, at: event.timeStamp } : null;
  if (found === undefined) return;
  event.preventDefault();
  found.run();
}

function isForOthers(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return true;
  return isTyping(event.target) || document.querySelector('dialog[open]') !== null;
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches('textarea, select, input:not([type=checkbox], [type=radio], [type=range])'))
  );
}
