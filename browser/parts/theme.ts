/** Light or dark: as the system says, or as chosen; and the colors of it for canvases, which know no CSS variables. */
import { useEffect, useState } from 'preact/hooks';

const KEY = 'temper.theme';
const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const followers = new Set<() => void>();
const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
systemIsDark.addEventListener('change', tellFollowers);

function tellFollowers(): void {
  for (const tell of followers) tell();
}

function readTheme(): Theme {
  // A page from a file, or a browser without storage, has none.
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? 'system';
  } catch {
    return 'system';
  }
}

function setTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Holds until the page is left.
  }
  tellFollowers();
}

export function applyTheme(theme: Theme = readTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

/** Number that changes with the theme, for what has to be drawn again. */
export function useThemeVersion(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const follow = (): void => setVersion((before) => before + 1);
    followers.add(follow);
    return () => void followers.delete(follow);
  }, []);
  return version;
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  useThemeVersion();
  const chosen = (document.documentElement.dataset['theme'] ?? 'system') as Theme;
  return [chosen, setTheme];
}

let probe: HTMLElement | null = null;

/** Color of a CSS variable such as `--series-1`, as a canvas takes it. */
export function colorOf(variable: string): string {
  if (probe === null) {
    probe = document.createElement('span');
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}
