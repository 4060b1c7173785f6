/** Frame of all pages: where one is, search, whether the server is there, theme, help. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { navigate, pathTo, useHashPath, useTopOfNewPages } from '../location.ts';
import { useConnection, type LiveState } from '../live.ts';
import { placeOf, type PagePlace } from './crumbs.ts';
import { useKeys, activeBindings } from './keys.ts';
import { RunBar } from './run-bar.tsx';
import { useServerInfo } from '../data.ts';
import { Notice } from './small.tsx';
import { useTheme, type Theme } from './theme.ts';
import { Dialog } from './dialog.tsx';

export function Frame({ children }: { children: ComponentChildren }) {
  const [path] = useHashPath();
  const place = placeOf(path);
  const search = useRef<HTMLInputElement>(null);
  const [isHelp, setIsHelp] = useState(false);
  useKeys([
    { keys: '?', label: 'Show these keys', run: () => setIsHelp(true) },
    { keys: '/', label: 'Search', run: () => focusSearch(search.current) },
    { keys: 'g r', label: 'Go to all runs', run: () => navigate('/') },
    ...(place.run === null ? [] : runKeys(place.run)),
    { keys: 'Escape', label: 'Go one level up', run: () => goUp(place) },
  ]);
  const title = place.crumbs
    .map(({ label }) => label)
    .toReversed()
    .join(' · ');
  useEffect(() => {
    document.title = `${title} · Temper`;
  }, [title]);
  useTopOfNewPages();
  return (
    <>
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the page
      </a>
      <header class="top">
        <Link class="brand" href="/" aria-label="Temper, all runs">
          <Mark />
          <span>Temper</span>
        </Link>
        <Crumbs place={place} />
        {place.run !== null && <SearchBox run={place.run} input={search} />}
        <Live />
        <ThemeButton />
        <button type="button" class="quiet icon" aria-label="Keys" title="Keys (?)" onClick={() => setIsHelp(true)}>
          ?
        </button>
      </header>
      <LostBanner />
      {place.run !== null && <RunBar run={place.run} page={place.page} />}
      <main id="main" tabIndex={-1}>
        {children}
        <ExportFoot />
      </main>
      <div class="visually-hidden" aria-live="polite">
        {title}
      </div>
      {isHelp && <KeyHelp onClose={() => setIsHelp(false)} />}
    </>
  );
}

function runKeys(run: string) {
  const go = (...parts: string[]) => navigate(pathTo('runs', run, ...parts));
  return [
    { keys: 'g o', label: 'Go to the run’s overview', run: () => go() },
    { keys: 'g a', label: 'Go to the run’s attempts', run: () => go('attempts') },
    { keys: 'g c', label: 'Go to the run’s checkpoints', run: () => go('checkpoints') },
  ];
}

function goUp({ crumbs }: PagePlace): void {
  const above = crumbs.at(-2);
  if (above !== undefined) navigate(above.path);
}

/** The page's own search comes before that of the frame. */
function focusSearch(box: HTMLInputElement | null): void {
  const target = document.querySelector<HTMLInputElement>('main [data-search]') ?? box;
  target?.focus();
  target?.select();
}

/** The fragment is the page's place, so the link must not change it. */
function skipToMain(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function Mark() {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
      <path d="M2 13.5 6.5 8l3 3L16 3.5" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linejoin="round" />
      <circle cx="16" cy="3.5" r="2" fill="currentColor" />
    </svg>
  );
}

function Crumbs({ place: { crumbs } }: { place: PagePlace }) {
  return (
    <nav class="crumbs" aria-label="Where you are">
      <ol>
        {crumbs.map(({ label, path }, at) => (
          <li key={path}>
            {at === crumbs.length - 1 ? <span aria-current="page">{label}</span> : <a href={`#${path}`}>{label}</a>}
          </li>
        ))}
      </ol>
    </nav>
  );
}

function SearchBox({ run, input }: { run: string; input: { current: HTMLInputElement | null } }) {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const text = input.current?.value.trim() ?? '';
    // The keys of the page that comes work again.
    input.current?.blur();
    navigate(`${pathTo('runs', run, 'attempts')}${text === '' ? '' : `?${new URLSearchParams({ text })}`}`);
  };
  return (
    <form class="search" role="search" aria-label="Attempts" onSubmit={submit}>
      <input ref={input} type="search" placeholder="Search attempts" aria-label={`Search the attempts of ${run}`} />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

const LIVE: Readonly<Record<LiveState, { text: string; title: string }>> = {
  connecting: { text: 'Connecting', title: 'The page connects to temper ui' },
  live: { text: 'Live', title: 'The page follows the store' },
  lost: { text: 'Offline', title: 'temper ui does not answer; the page tries again' },
  export: { text: 'Static', title: 'An export: it shows the store as it was' },
};

function Live() {
  const connection = useConnection();
  const info = useServerInfo();
  const { text, title } = LIVE[connection];
  const temporal = info === null || info.isExport ? '' : info.hasTemporal ? '; Temporal answers' : '; without Temporal';
  return (
    <span class={`live ${connection}`} role="status" title={title + temporal}>
      <i aria-hidden="true" />
      <span>{text}</span>
    </span>
  );
}

/** Of an export: what made it, and what it does not contain. */
function ExportFoot() {
  const info = useServerInfo();
  if (info === null || !info.isExport) return null;
  const { version, leftOut = null } = info;
  return (
    <footer class="export-foot note">
      {leftOut !== null && (
        <p>This export has the attempts of some steps only ({leftOut}). The store has all of them.</p>
      )}
      <p>Made by Temper {version}. It works offline and loads nothing from the network.</p>
    </footer>
  );
}

function LostBanner() {
  const connection = useConnection();
  if (connection !== 'lost') return null;
  return (
    <div class="banner">
      <Notice level="bad" title="temper ui does not answer">
        What you see may be old. The page tries again by itself. If the command has ended, start <code>temper ui</code>{' '}
        again and open its link.
      </Notice>
    </div>
  );
}

const NEXT_THEME: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };
const THEME_SIGN: Readonly<Record<Theme, string>> = { system: '◐', light: '☀', dark: '☾' };

function ThemeButton() {
  const [theme, setTheme] = useTheme();
  return (
    <button
      type="button"
      class="quiet icon"
      aria-label={`Theme: ${theme}`}
      title={`Theme: ${theme}; click for ${NEXT_THEME[theme]}`}
      onClick={() => setTheme(NEXT_THEME[theme])}
    >
      {THEME_SIGN[theme]}
    </button>
  );
}

/** Keys of the tables and tabs, which act where the focus is. */
const EVERYWHERE: readonly (readonly [string, string])[] = [
  ['↑ ↓ PgUp PgDn Home End', 'Move in a table'],
  ['Space', 'Choose the run or the checkpoint to compare'],
  ['Enter', 'Open the row or the point of a chart'],
  ['← →', 'Move between tabs and points of a chart'],
];

/** List of the keys that do something on the shown page. */
function KeyHelp({ onClose }: { onClose: () => void }) {
  const [bindings] = useState(activeBindings);
  const rows = [...bindings.map(({ keys, label }) => [keys, label] as const), ...EVERYWHERE];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="key-list">
        {rows.map(([keys, label]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
      <p>
        <a href="#/glossary" onClick={onClose}>
          What the terms mean
        </a>
      </p>
    </Dialog>
  );
}
