/** A page that opens offline: one HTML file with all that it needs, which may fetch nothing. */
import { createHash } from 'node:crypto';
import type { ReportPageData } from '../../views/api/report-page.ts';
import type { GroupBounds } from '../../views/attempts/group.ts';
import { embedJson, htmlText, markup, trusted, type Html } from './html.ts';
import { readPageFiles } from './page-files.ts';

/** Limits that keep a page small enough to mail. */
export const BOUNDS = {
  /** Steps whose groups are shown: the first, the last, and as many between. */
  steps: 8,
  groupsPerStep: 6,
  evalGames: 24,
  attemptsPerGroup: 32,
  callsPerAttempt: 40,
  textLength: 8000,
  /** Characters of all attempts together. */
  total: 6_000_000,
} as const;

/** The same for one group. */
export const GROUP_BOUNDS: GroupBounds = {
  attempts: BOUNDS.attemptsPerGroup,
  calls: BOUNDS.callsPerAttempt,
  textLength: BOUNDS.textLength,
  promptLength: BOUNDS.textLength,
  total: BOUNDS.total,
};

interface Page {
  readonly title: string;
  readonly body: Html;
  /** Data that the page's script draws into the body. */
  readonly data: ReportPageData;
}

export async function renderPage({ title, body, data }: Page): Promise<string> {
  const { js: script, css: style } = await readPageFiles('report');
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${contentPolicy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Temper</title>
${inline('style', style)}
</head>
<body>
<main>
${body}
</main>
<script type="application/json" id="data">${embedJson(data)}</script>
${inline('script', script)}
</body>
</html>
`;
  return htmlText(page);
}

/** Exact bytes that the content policy hashes: the browser refuses any other. */
function inline(tag: 'style' | 'script', source: string): Html {
  return trusted(`<${tag}>${source}</${tag}>`);
}

/** Content policy: no network, frames or forms, and only this script and this style, by hash. */
function contentPolicy(style: string, script: string): string {
  return [
    "default-src 'none'",
    `script-src ${sourceHash(script)}`,
    `style-src ${sourceHash(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

function sourceHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
