/** The rows in sight of a scrolled element, by @tanstack/virtual-core. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useReducer, useState, type MutableRef } from 'preact/hooks';

/** Rows above and below those in sight, so that fast scrolling finds them there. */
const OVERSCAN = 16;
const HEAD_HEIGHT = 32;

interface VirtualRows {
  readonly items: readonly { readonly index: number; readonly start: number }[];
  /** Height of all rows. */
  readonly total: number;
  /** Scrolls as little as it takes to have a row in sight. */
  readonly show: (index: number) => void;
}

export function useVirtualRows(
  scroller: MutableRef<HTMLDivElement | null>,
  count: number,
  rowHeight: number,
): VirtualRows {
  const [, rerender] = useReducer<number, void>((version) => version + 1, 0);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: OVERSCAN,
    // The head takes its height from what is scrolled.
    scrollPaddingEnd: HEAD_HEIGHT,
    onChange: () => rerender(),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  virtualizer.setOptions(options);
  // The library's adapters for other frameworks call these two.
  /* oxlint-disable no-underscore-dangle */
  useEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  /* oxlint-enable no-underscore-dangle */
  useLayoutEffect(() => virtualizer.measure(), [rowHeight]);
  return {
    items: virtualizer.getVirtualItems(),
    total: virtualizer.getTotalSize(),
    show: (index) => virtualizer.scrollToIndex(index, { align: 'auto' }),
  };
}
