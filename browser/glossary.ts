/** Terms of docs/glossary.md, which the bundle carries: the pages have no text of their own for them. */
export interface GlossaryTerm {
  readonly term: string;
  /** Plain text. */
  readonly text: string;
}

/** Put into the bundle by `bundle.ts`. */
declare const GLOSSARY: readonly GlossaryTerm[];

export function allTerms(): readonly GlossaryTerm[] {
  return GLOSSARY;
}

/** Labels that are not the term itself or its plural. */
export const OTHER_LABELS: Readonly<Record<string, string>> = {
  'held out': 'held-out set',
  replaced: 'replaced group',
  'reward of last step': 'reward',
  'truncated share': 'truncated',
};

/** The term that a label of a page is. */
export function findTerm(label: string, terms = allTerms()): GlossaryTerm | null {
  const name = label.toLowerCase();
  const wanted = OTHER_LABELS[name] ?? name;
  return terms.find(({ term }) => [term, `${term}s`].some((each) => each.toLowerCase() === wanted)) ?? null;
}

/** Its first sentence. */
export function meaningOf({ text }: GlossaryTerm): string {
  return /^.*?\.(?= |$)/s.exec(text)?.[0] ?? text;
}

/** Each heading of the second level with what stands below it: links as their words, without `See …`. */
export function parseGlossary(page: string): GlossaryTerm[] {
  const [, ...parts] = page.split(/^## /m);
  return parts.map((part) => {
    const [term = '', ...lines] = part.replace(/^Next: .*$/m, '').split('\n');
    const text = lines
      .join(' ')
      .replaceAll(/ See \[[^[\]]*\]\([^()]*\)\./g, '')
      .replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, '$1')
      .replaceAll(/\s+/g, ' ')
      .replaceAll('`', '');
    return { term, text: text.trim() };
  });
}
