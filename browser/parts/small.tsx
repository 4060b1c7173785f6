/** Smallest parts of the pages. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Loaded } from '../data.ts';
import { pathTo } from '../location.ts';
import { findTerm, meaningOf } from '../glossary.ts';

export function Chip({ kind = '', title, children }: { kind?: string; title?: string; children: ComponentChildren }) {
  return (
    <span class={`chip ${kind}`} title={title}>
      {children}
    </span>
  );
}

export type NoticeLevel = 'info' | 'good' | 'warn' | 'bad';

/** Message in a box. */
export function Notice(props: { level?: NoticeLevel; title?: string; children?: ComponentChildren }) {
  const { level = 'info', title, children } = props;
  return (
    <div class={`notice ${level}`} role={level === 'bad' ? 'alert' : 'status'}>
      <div class="notice-text">
        {title !== undefined && <strong>{title}</strong>}
        {children !== undefined && <div>{children}</div>}
      </div>
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Loading {what} …
    </p>
  );
}

export function Failed({ what, message }: { what: string; message: string }) {
  return (
    <Notice level="bad" title={`Cannot show ${what}`}>
      {message}
    </Notice>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

/** Shows an answer when there is one; the one before stays while it is fetched again. */
export function Shown<T>(props: { loaded: Loaded<T>; what: string; children: (value: T) => ComponentChildren }) {
  const { loaded, what, children } = props;
  const failed = loaded.state === 'failed' ? <Failed what={what} message={loaded.message} /> : null;
  if (loaded.value === null) return failed ?? <Loading what={what} />;
  return (
    <>
      {failed}
      {children(loaded.value)}
    </>
  );
}

const COPIED_MS = 1500;

export function CopyButton({ text, label = 'Copy', title }: { text: string; label?: string; title?: string }) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return undefined;
    const timer = setTimeout(() => setSaid(null), COPIED_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = (): void =>
    void navigator.clipboard.writeText(text).then(
      () => setSaid('Copied'),
      () => setSaid('Not allowed by the browser'),
    );
  return (
    <button type="button" class="copy" title={title} onClick={copy}>
      <span aria-live="polite">{said ?? label}</span>
    </button>
  );
}

/** Explanation that opens on a click, and by the keyboard. */
export function Tip({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <details class="tip">
      <summary aria-label={label} title={label}>
        ?
      </summary>
      <div class="tip-text">{children}</div>
    </details>
  );
}

/** Facts as label and value. */
export function Facts({ of }: { of: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts-list">
      {of.map(([label, value]) => (
        <div key={label}>
          <dt title={titleOf(label)}>{label}</dt>
          <dd title={typeof value === 'string' ? value : undefined}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Without a meaning, the label alone. */
export function Term({ label }: { label: string }) {
  const found = findTerm(label);
  if (found === null) return <>{label}</>;
  const title = meaningOf(found);
  return (
    <a class="term" href={`#${glossaryPath(found.term)}`} title={title}>
      {label}
    </a>
  );
}

/** For what cannot hold a link: a column that is sorted by a click, a label close to another link. */
export function titleOf(label: string): string | undefined {
  const found = findTerm(label);
  return found === null ? undefined : meaningOf(found);
}

function glossaryPath(term: string): string {
  return `${pathTo('glossary')}?${new URLSearchParams({ term })}`;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TICK_MS = 15_000;

/** Times as people read them; the exact one is in the title. */
export function Ago({ at, since = false }: { at: string | null; since?: boolean }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  if (at === null) return <span class="dim">–</span>;
  const text = describeAge((now - Date.parse(at)) / 1000);
  return (
    <time dateTime={at} title={at}>
      {since ? text : text === 'now' ? 'just now' : `${text} ago`}
    </time>
  );
}

function describeAge(seconds: number): string {
  if (seconds < 20) return 'now';
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h`;
  return `${Math.floor(seconds / DAY)} d`;
}
