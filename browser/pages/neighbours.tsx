/** Links to the page before and after, with their keys. */
import { navigate } from '../location.ts';
import { useKeys } from '../parts/keys.ts';

interface NeighboursProps {
  readonly what: 'step' | 'group' | 'attempt';
  /** Paths; null at an end. */
  readonly previous: string | null;
  readonly next: string | null;
}

export function Neighbours({ what, previous, next }: NeighboursProps) {
  const go = (path: string | null): void => {
    if (path !== null) navigate(path);
  };
  useKeys([
    { keys: '[', label: `Previous ${what}`, run: () => go(previous) },
    { keys: ']', label: `Next ${what}`, run: () => go(next) },
  ]);
  if (previous === null && next === null) return null;
  return (
    <nav class="neighbours" aria-label={`Other ${what}s`}>
      <NeighbourLink path={previous} title={`Previous ${what}, key [`} none={`This is the first ${what}`}>
        ← previous
      </NeighbourLink>
      <NeighbourLink path={next} title={`Next ${what}, key ]`} none={`This is the last ${what}`}>
        next →
      </NeighbourLink>
    </nav>
  );
}

interface NeighbourLinkProps {
  readonly path: string | null;
  readonly title: string;
  /** Title where there is nothing to go to. */
  readonly none: string;
  readonly children: string;
}

function NeighbourLink({ path, title, none, children }: NeighbourLinkProps) {
  if (path !== null)
    return (
      <a class="button" href={`#${path}`} title={title}>
        {children}
      </a>
    );
  return (
    <button type="button" disabled title={none}>
      {children}
    </button>
  );
}
