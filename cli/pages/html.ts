/** HTML by tagged template: every value is escaped unless it was made by this same tag. */
const HTML = Symbol('html');

/** Markup that only this file makes: no value of a run's files can pass as markup. */
export interface Html {
  readonly [HTML]: string;
}

type Part = Html | string | number | null | readonly Part[];

export function markup(strings: TemplateStringsArray, ...values: readonly Part[]): Html {
  return {
    [HTML]: strings.map((text, index) => text + (index < values.length ? render(values[index]!) : '')).join(''),
  };
}

/** Marks text as markup: only for the page's own style sheet and scripts. */
export function trusted(text: string): Html {
  return { [HTML]: text };
}

function render(part: Part): string {
  if (part === null) return '';
  if (isParts(part)) return part.map(render).join('');
  return typeof part === 'object' && HTML in part ? part[HTML] : escapeHtml(String(part));
}

function isParts(part: Part): part is readonly Part[] {
  return Array.isArray(part);
}

export function htmlText(html: Html): string {
  return html[HTML];
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

/** JSON inside a script element: `<` as an escape, so that neither `</script>` nor `<!--` can end it. */
export function embedJson(value: unknown): Html {
  return trusted(
    JSON.stringify(value)
      .replace(/</g, '\\u003c')
      .replace(/\u2028/g, '\\u2028')
      .replace(/\u2029/g, '\\u2029'),
  );
}
