/** Tokens of a turn as they were recorded, colored by one number; arrow keys and the mouse name one of them. */
import { useRef, useEffect, useState } from 'preact/hooks';
import { plural } from '../../core/reports/format.ts';
import type { TurnTokens } from '../../views/api/attempt-views.ts';
import { describeNumbers, numbersOf, shadeOf, type Overlay, type Scale } from './overlays.ts';
import { chunkStarts, isControlToken, showToken } from './token-text.ts';
import type { ComponentChildren } from 'preact';

export interface TokenPlace {
  readonly turn: number;
  readonly index: number;
}

export interface TokenLook {
  readonly overlay: Overlay;
  readonly scale: Scale | null;
  /** The attempt's advantage. */
  readonly fallback: number | null;
  readonly isMarked: boolean;
  readonly hasText: boolean;
}

interface StripProps {
  readonly turn: TurnTokens;
  readonly number: number;
  readonly look: TokenLook;
  readonly onPoint: (place: TokenPlace) => void;
}

/** Most tokens of one list: browsers lay out some thousand at a time without a pause. */
const CHUNK = 400;

export function TokenStrip({ turn, number, look, onPoint }: StripProps) {
  const starts = chunkStarts(turn, CHUNK);
  return (
    <div class="token-strip">
      {turn.shared > 0 && (
        <p class="note">{plural(turn.shared, 'prompt token')} of earlier turns are not shown again</p>
      )}
      {starts.map((from, index) => {
        const to = starts[index + 1] ?? turn.ids.length;
        return (
          <WhenSeen key={from} estimate={Math.ceil((to - from) / 14) * 24}>
            {() => <Chunk turn={turn} number={number} look={look} onPoint={onPoint} from={from} to={to} />}
          </WhenSeen>
        );
      })}
    </div>
  );
}

function Chunk({ turn, number, look, onPoint, from, to }: StripProps & { from: number; to: number }) {
  const list = useRef<HTMLDivElement>(null);
  const tokens = Array.from({ length: to - from }, (_, offset) => from + offset);
  const point = (node: Element | null): void => {
    if (node === null || !(node instanceof HTMLElement) || node.dataset['token'] === undefined) return;
    onPoint({ turn: number, index: Number(node.dataset['token']) });
  };
  const tokenOf = (event: Event): Element | null =>
    event.target instanceof Element ? event.target.closest('[data-token]') : null;
  return (
    <div
      ref={list}
      class="tokens"
      role="listbox"
      tabIndex={0}
      aria-label={`Tokens ${from + 1} to ${to} of turn ${number + 1}`}
      onMouseOver={(event) => point(tokenOf(event))}
      onClick={(event) => {
        const node = tokenOf(event);
        if (node !== null) moveTo(list.current!, node);
        point(node);
      }}
      onFocus={() => {
        const node = currentOf(list.current!) ?? list.current!.firstElementChild;
        if (node !== null) moveTo(list.current!, node);
        point(node);
      }}
      onKeyDown={(event) => {
        const node = nextOf(list.current!, event.key);
        if (node === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        const target = node.closest<HTMLElement>('.tokens')!;
        moveTo(target, node);
        // Another list tells by itself where it is.
        if (target === list.current) point(node);
        else target.focus();
      }}
    >
      {tokens.map((index) => (
        <Token key={index} turn={turn} index={index} look={look} />
      ))}
    </div>
  );
}

function Token({ turn, index, look }: { turn: TurnTokens; index: number; look: TokenLook }) {
  const numbers = numbersOf(turn, index, look.fallback);
  const text = turn.text[index] ?? '';
  const isControl = look.hasText && isControlToken(turn, index);
  const [shade, level] = shadeOf(look.overlay, numbers, look.scale);
  const classes = ['token', numbers.isSampled ? 'sampled' : 'prompt', isControl ? 'control' : '', shade];
  const shown = look.hasText ? (text === '' ? '∅' : showToken(text, look.isMarked)) : String(turn.ids[index]);
  return (
    <span
      class={classes.filter((name) => name !== '').join(' ')}
      style={{ '--level': level }}
      role="option"
      aria-selected="false"
      data-token={index}
    >
      {shown}
    </span>
  );
}

function currentOf(list: HTMLElement): Element | null {
  return list.querySelector('[data-current]');
}

/** Set on the elements themselves: drawing thousands of tokens again for each key would be slow. */
function moveTo(list: HTMLElement, node: Element): void {
  for (const old of document.querySelectorAll('.tokens [data-current]')) {
    old.removeAttribute('data-current');
    old.removeAttribute('id');
    old.setAttribute('aria-selected', 'false');
  }
  node.setAttribute('data-current', '');
  node.setAttribute('aria-selected', 'true');
  node.id = 'current-token';
  list.setAttribute('aria-activedescendant', node.id);
  node.scrollIntoView({ block: 'nearest' });
}

/** Undefined for another key. */
function nextOf(list: HTMLElement, key: string): Element | undefined {
  const current = currentOf(list) ?? list.firstElementChild;
  return current === null ? undefined : (MOVES[key]?.(list, current) ?? undefined);
}

const forward = (list: Element, current: Element): Element => neighbour(list, 1)?.firstElementChild ?? current;
const back = (list: Element, current: Element): Element => neighbour(list, -1)?.lastElementChild ?? current;

const MOVES: Readonly<Record<string, (list: Element, current: Element) => Element | null>> = {
  Home: (list) => list.firstElementChild,
  End: (list) => list.lastElementChild,
  ArrowRight: (list, current) => current.nextElementSibling ?? forward(list, current),
  ArrowLeft: (list, current) => current.previousElementSibling ?? back(list, current),
  ArrowDown: (list, current) => onLine(current, 1) ?? forward(list, current),
  ArrowUp: (list, current) => onLine(current, -1) ?? back(list, current),
};

function neighbour(list: Element, direction: 1 | -1): Element | undefined {
  const lists = [...document.querySelectorAll('.tokens')];
  return lists[lists.indexOf(list) + direction];
}

/** The token above or below that begins nearest. */
function onLine(current: Element, direction: 1 | -1): Element | undefined {
  const from = current.getBoundingClientRect();
  const next = (node: Element): Element | null =>
    direction > 0 ? node.nextElementSibling : node.previousElementSibling;
  let best: { node: Element; distance: number; top: number } | undefined;
  for (let node = next(current); node !== null; node = next(node)) {
    const box = node.getClientRects()[0];
    if (box === undefined || Math.abs(box.top - from.top) < 4) continue;
    if (best !== undefined && Math.abs(box.top - best.top) > 4) break;
    const distance = Math.abs(box.left - from.left);
    if (best === undefined || distance < best.distance) best = { node, distance, top: box.top };
  }
  return best?.node;
}

/** `token 42 "the"`, and its numbers. */
export function describeToken(turn: TurnTokens, index: number, { fallback, hasText }: TokenLook): string[] {
  const text = turn.text[index] ?? '';
  return [
    `token ${turn.ids[index]}`,
    ...(hasText ? [`“${showToken(text, true)}”`] : []),
    ...describeNumbers(numbersOf(turn, index, fallback)),
  ];
}

const MARGIN = '1200px 0px';

interface WhenSeenProps {
  /** Height to keep free until it was drawn for the first time. */
  readonly estimate: number;
  readonly children: () => ComponentChildren;
}

/** Draws its content only while it is near the window: what was drawn once keeps its height after that. */
function WhenSeen({ estimate, children }: WhenSeenProps) {
  const place = useRef<HTMLDivElement>(null);
  const [isSeen, setSeen] = useState(false);
  const [height, setHeight] = useState(estimate);
  useEffect(() => {
    const node = place.current!;
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (entry === undefined) return;
        // Not away from the keyboard: what has the focus stays.
        if (!entry.isIntersecting && node.contains(document.activeElement)) return;
        if (!entry.isIntersecting && node.offsetHeight > 0) setHeight(node.offsetHeight);
        setSeen(entry.isIntersecting);
      },
      { rootMargin: MARGIN },
    );
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={place} style={isSeen ? undefined : { height: `${height}px` }}>
      {isSeen ? children() : null}
    </div>
  );
}
