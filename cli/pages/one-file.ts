/** A page that opens offline: one HTML file with style, script and answers of views. It may fetch nothing. */
import { createHash } from 'node:crypto';
import type { ServerInfo } from '../../views/api/requests.ts';
import type { GroupBounds } from '../../views/context/context.ts';
import { version } from '../../workers/version.ts';
import type { AnswerSink, ExportBounds } from './export-run.ts';
import { embedJson, markup, trusted, type Html } from './html.ts';
import { pageDocument, readPageFiles } from './page-files.ts';

/** Small enough to mail. */
export const FILE_BOUNDS: ExportBounds = { runBytes: 6_000_000, isWhole: false };
export const FILE_GROUP_BOUNDS: GroupBounds = {
  attempts: 32,
  calls: 40,
  textLength: 8000,
  promptLength: 8000,
  total: 1_500_000,
};

export class AnswerFile implements AnswerSink {
  readonly #answers: Record<string, object> = {};
  bytes = 0;

  add(path: string, answer: object): Promise<void> {
    this.#answers[path] = answer;
    this.bytes += JSON.stringify(answer).length;
    return Promise.resolve();
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  /** `home`: the page's place at which it opens. */
  async render(title: string, home: string): Promise<string> {
    const { js, css } = await readPageFiles('ui');
    return pageDocument({
      title: `${title} · Temper`,
      head: markup`<meta http-equiv="Content-Security-Policy" content="${contentPolicy(css, js)}">
<meta name="referrer" content="no-referrer">
${inline('style', css)}`,
      scripts: markup`<script type="application/json" id="answers">${embedJson({ home, answers: this.#answers })}</script>
${inline('script', js)}`,
    });
  }
}

/** What an export tells of itself. The store's place is of no use to those who get it, and tells of the machine: its name is enough. */
export function exportInfo(store: string, leftOut: string | null): ServerInfo {
  return {
    version: version(),
    store: store.split('/').at(-1) ?? '',
    isReadOnly: true,
    isExport: true,
    hasTemporal: false,
    temporalUi: null,
    actions: [],
    leftOut,
  };
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
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

/** Of a style or a script: a content policy with it allows these bytes alone. */
export function sourceHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
