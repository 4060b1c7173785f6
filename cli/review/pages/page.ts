/** Pages of `temper review`: one document with its own style, which may load nothing and run no script. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { markup, trusted, type Html } from '../../report/html.ts';

const STYLE = readFileSync(new URL('../browser/review.css', import.meta.url), 'utf8');
/** By hash: the browser applies no other style. */
const STYLE_SOURCE = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;

/** A page's address holds its key: no other site gets to see it, and no cache keeps the page. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src ${STYLE_SOURCE}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
  'cache-control': 'no-store',
} as const;

export function page({ title, body }: { readonly title: string; readonly body: Html }): Html {
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Temper</title>
${trusted(`<style>${STYLE}</style>`)}
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
}

/** One line that says what happened. */
export function noticePage(title: string, message: string): Html {
  return page({ title, body: markup`<h1>${title}</h1>\n<p class="notice" dir="auto">${message}</p>` });
}

export function refusalPage(message: string): Html {
  return noticePage('Not accepted', message);
}

export function notFoundPage(message: string): Html {
  return noticePage('Not found', message);
}
