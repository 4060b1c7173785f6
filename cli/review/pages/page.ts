/** Documents of `temper review`: each has its own style, may load nothing, and runs no script but one that presses buttons. */
import { sourceHash } from '../../pages/one-file.ts';
import { htmlText, markup, trusted, type Html } from '../../pages/html.ts';
import type { PageFiles } from '../../pages/page-files.ts';

export interface Page {
  readonly title: string;
  readonly body: Html;
  /** Room for two columns. */
  readonly isWide?: boolean;
  /** Buttons have keys, which the script presses. */
  readonly hasKeys?: boolean;
}

/** A page's address holds its key: no other site gets to see it, and no cache keeps the page. */
export function pageHeaders({ hasKeys = false }: Page, { css, js }: PageFiles): Readonly<Record<string, string>> {
  const policy = `default-src 'none'; style-src ${sourceHash(css)}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`;
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': hasKeys ? `${policy}; script-src ${sourceHash(js)}` : policy,
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-robots-tag': 'noindex',
    'cache-control': 'no-store',
  };
}

export function renderPage({ title, body, isWide = false, hasKeys = false }: Page, { css, js }: PageFiles): string {
  return htmlText(markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Temper</title>
${trusted(`<style>${css}</style>`)}
</head>
<body>
<main${isWide ? markup` class="wide"` : null}>
${body}
</main>
${hasKeys ? trusted(`<script>${js}</script>`) : null}
</body>
</html>
`);
}

/** One line that says what happened. */
export function noticePage(title: string, message: string): Page {
  return { title, body: markup`<h1>${title}</h1>\n<p class="notice" dir="auto">${message}</p>` };
}
