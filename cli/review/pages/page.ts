/** Pages of `temper review`: one document with its own style, which may load nothing, and runs no script but one that presses buttons. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { markup, trusted, type Html } from '../../pages/html.ts';

const STYLE = readBrowserFile('review.css');
const KEYS_SCRIPT = readBrowserFile('review-keys.js');

function readBrowserFile(name: string): string {
  return readFileSync(new URL(`../browser/${name}`, import.meta.url), 'utf8');
}

/** Hash of the page's own style or script: the browser uses no other. */
function sourceOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

const POLICY = `default-src 'none'; style-src ${sourceOf(STYLE)}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`;

/** A page's address holds its key: no other site gets to see it, and no cache keeps the page. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
  'cache-control': 'no-store',
} as const;

/** For a page with keys: the script that presses its buttons. */
export const KEYS_HEADERS = { 'content-security-policy': `${POLICY}; script-src ${sourceOf(KEYS_SCRIPT)}` } as const;

export interface PageParts {
  readonly title: string;
  readonly body: Html;
  /** Room for two columns. */
  readonly isWide?: boolean;
  /** Buttons have keys; send it with `KEYS_HEADERS`. */
  readonly hasKeys?: boolean;
}

export function page({ title, body, isWide = false, hasKeys = false }: PageParts): Html {
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Temper</title>
${trusted(`<style>${STYLE}</style>`)}
</head>
<body>
<main${isWide ? markup` class="wide"` : null}>
${body}
</main>
${hasKeys ? trusted(`<script>${KEYS_SCRIPT}</script>`) : null}
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
