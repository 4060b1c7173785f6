/** Page around a report: one HTML file with all that it needs, which may fetch nothing. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { TemperError } from '../../core/failures.ts';
import type { Chart } from './chart.ts';
import type { AttemptSet } from './data.ts';
import { embedJson, htmlText, markup, trusted, type Html } from './html.ts';

interface Page {
  readonly title: string;
  readonly body: Html;
  /** Data that the page's script draws into the body. */
  readonly data: { readonly charts: readonly Chart[]; readonly attemptSets: readonly AttemptSet[] };
}

export function renderPage({ title, body, data }: Page): string {
  const style = ['uplot/dist/uPlot.min.css'].map(readPackage).join('\n') + readAsset('report.css');
  const scripts = [readPackage('uplot/dist/uPlot.iife.min.js'), readAsset('report.js')];
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${contentPolicy(style, scripts)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Temper</title>
${inline('style', style)}
</head>
<body>
<main>
${body}
</main>
<script type="application/json" id="data">${embedJson(data)}</script>
${scripts.map((script) => inline('script', script))}
</body>
</html>
`;
  return htmlText(page);
}

/** Writes the page whole or not at all. */
export async function writePage(file: string, page: string): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(temporary, page);
    await rename(temporary, file);
  } catch (cause) {
    throw new TemperError(
      'StoreUnavailable',
      `cannot write the report to ${file} (${String(cause)}); choose another path with --out FILE`,
      { cause },
    );
  }
}

/** Exact bytes that the content policy hashes: the browser refuses any other. */
function inline(tag: 'style' | 'script', source: string): Html {
  return trusted(`<${tag}>${source}</${tag}>`);
}

/** Content policy: no network, frames or forms, and only these scripts and styles, by hash. */
function contentPolicy(style: string, scripts: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src ${scripts.map(sourceHash).join(' ')}`,
    `style-src ${sourceHash(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

function sourceHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function readAsset(name: string): string {
  return readFileSync(new URL(`browser/${name}`, import.meta.url), 'utf8');
}

function readPackage(path: string): string {
  return readFileSync(createRequire(import.meta.url).resolve(path), 'utf8');
}
