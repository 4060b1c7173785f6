/** HTML by tagged template: every value is escaped unless it was made by this same tag. */
export interface Html {
  readonly html: string;
}

type Part = Html | string | number | null | readonly Part[];

export function markup(strings: TemplateStringsArray, ...values: readonly Part[]): Html {
  return { html: strings.map((text, index) => text + (index < values.length ? render(values[index]!) : '')).join('') };
}

/** Text that is markup already: the page's own style sheet and scripts. */
export function trusted(text: string): Html {
  return { html: text };
}

function render(part: Part): string {
  if (part === null) return '';
  if (Array.isArray(part)) return part.map(render).join('');
  return typeof part === 'object' ? (part as Html).html : escapeHtml(String(part));
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
