/** Links to the page before and after, with their keys. */

interface NeighboursProps {
  readonly what: string;
  /** Paths; null at an end. */
  readonly previous: string | null;
  readonly next: string | null;
}

export function Neighbours({ what, previous, next }: NeighboursProps) {
  return (
    <nav class="neighbours" aria-label={`Other ${what}s`}>
      {previous === null ? null : (
        <a class="button" href={`#${previous}`} title={`Previous ${what}, key [`}>
          ← previous
        </a>
      )}
      {next === null ? null : (
        <a class="button" href={`#${next}`} title={`Next ${what}, key ]`}>
          next →
        </a>
      )}
    </nav>
  );
}
