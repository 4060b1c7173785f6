/** Draws its content only while it is near the window: what was drawn once keeps its height after that. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

const MARGIN = '1200px 0px';

interface WhenSeenProps {
  /** Height to keep free until it was drawn for the first time. */
  readonly estimate: number;
  readonly children: () => ComponentChildren;
}

export function WhenSeen({ estimate, children }: WhenSeenProps) {
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
