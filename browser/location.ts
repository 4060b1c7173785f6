/**
 * The page's place in the fragment of its address, `#/runs/demo?sort=reward`: it works from a folder, too, and nothing of
 * it is sent to the server.
 */
import { useEffect, useState } from 'preact/hooks';
import { homePlace } from './exported.ts';

function read(): string {
  const text = location.hash.slice(1);
  return text.startsWith('/') && text !== '/' ? text : homePlace();
}

export function navigate(to: string, { replace = false }: { replace?: boolean } = {}): void {
  if (read() === to) return;
  if (replace) location.replace(`#${to}`);
  else location.hash = to;
}

function useFragment(): string {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const follow = (): void => setPlace(read());
    addEventListener('hashchange', follow);
    follow();
    return () => removeEventListener('hashchange', follow);
  }, []);
  return place;
}

/** For wouter's `Router`: the path without the query. */
export function useHashPath(): [string, (to: string, options?: { replace?: boolean }) => void] {
  return [useFragment().split('?')[0]!, navigate];
}
useHashPath.hrefs = (href: string): string => `#${href}`;

/** A page that is opened begins at its top; where Back finds one again is the browser's. */
export function useTopOfNewPages(): void {
  useEffect(() => {
    const pathNow = (): string => read().split('?')[0]!;
    let path = pathNow();
    const arrive = (): void => {
      // An entry of the history that was seen before has a state.
      if (history.state === null && pathNow() !== path) scrollTo(0, 0);
      history.replaceState({}, '');
      path = pathNow();
    };
    history.replaceState({}, '');
    addEventListener('hashchange', arrive);
    return () => removeEventListener('hashchange', arrive);
  }, []);
}

/** Parameters after `?`, and how to change some: `null` removes one. */
export function useQuery(): [URLSearchParams, (changes: Readonly<Record<string, string | null>>) => void] {
  const [path, text = ''] = useFragment().split('?');
  const query = new URLSearchParams(text);
  return [
    query,
    (changes) => {
      const next = new URLSearchParams(query);
      for (const [name, value] of Object.entries(changes))
        if (value === null || value === '') next.delete(name);
        else next.set(name, value);
      navigate(next.size === 0 ? path! : `${path}?${next}`, { replace: true });
    },
  ];
}

/** Path of a page from its parts, each escaped. */
export function pathTo(...parts: readonly (string | number)[]): string {
  return `/${parts.map((part) => encodeURIComponent(part)).join('/')}`;
}

/** Null as the branch: the newest. */
export function stepPath(run: string, step: number, branch: number | null): string {
  const path = pathTo('runs', run, 'steps', step);
  return branch === null ? path : `${path}?branch=${branch}`;
}

export function hrefTo(...parts: readonly (string | number)[]): string {
  return `#${pathTo(...parts)}`;
}
