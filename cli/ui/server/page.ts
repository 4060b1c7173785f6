/** The documents of `temper ui`: the page, which loads its script and style from this server alone, and notices. */
import { htmlText, markup } from '../../pages/html.ts';
import { pageDocument, SCRIPT_LINK, STYLE_LINK } from '../../pages/page-files.ts';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** For every answer: no other site frames, reads or guesses what it is, and no address is told to others. */
export const SAFE_HEADERS = {
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'x-robots-tag': 'noindex',
} as const;

export const PAGE = pageDocument({ head: STYLE_LINK, scripts: SCRIPT_LINK });

export const HTML_TYPE = 'text/html; charset=utf-8';

/** One line that says what to do. */
export function messagePage(title: string, message: string): string {
  return htmlText(markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<title>${title} · Temper</title>
<link rel="icon" href="data:,">
</head>
<body>
<main>
<h1>${title}</h1>
<p>${message}</p>
</main>
</body>
</html>
`);
}
