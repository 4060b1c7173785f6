/** A label whose meaning is in the glossary: it says it, and leads there where there is a page of it. */
import { pathTo } from '../location.ts';
import { findTerm, meaningOf } from '../glossary.ts';

/** Without a meaning, the label alone. */
export function Term({ label }: { label: string }) {
  const found = findTerm(label);
  if (found === null) return <>{label}</>;
  const title = meaningOf(found);
  // A report is one page.
  if (document.getElementById('app') === null) return <abbr title={title}>{label}</abbr>;
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
