/**
 * Files of a static site: its pages, and answers of views in scripts, which a page that was opened from a folder may load
 * as it may not fetch.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AnswerSink } from './export-run.ts';
import { markup } from './html.ts';
import { pageDocument, SCRIPT_LINK, STYLE_LINK, type PageFiles } from './page-files.ts';

/** A script is begun anew above this: a page loads no more than what it shows. */
const SCRIPT_BYTES = 256 * 1024;

/** `file:` because browsers differ in what `'self'` is of a page from a file. */
const POLICY =
  "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' data:; base-uri 'none'; form-action 'none'";

const INDEX = pageDocument({
  head: markup`<meta http-equiv="content-security-policy" content="${POLICY}">
<meta name="referrer" content="no-referrer">
${STYLE_LINK}`,
  scripts: markup`<script src="data/manifest.js"></script>
${SCRIPT_LINK}`,
});

export class SiteWriter implements AnswerSink {
  readonly #folder: string;
  readonly #places: Record<string, number> = {};
  #waiting: [path: string, answer: object][] = [];
  #waitingBytes = 0;
  #scripts = 0;
  /** Bytes of all answers so far. */
  bytes = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async begin({ js, css }: PageFiles): Promise<void> {
    await mkdir(join(this.#folder, 'data'), { recursive: true });
    // Until its end, an export has no page that would open; by its manifest, another export may take its place.
    await rm(join(this.#folder, 'index.html'), { force: true });
    await this.#writeManifest();
    await this.#write('page.js', js);
    await this.#write('page.css', css);
  }

  /** `path`: as pages ask for it, below `/api/`. */
  async add(path: string, answer: object): Promise<void> {
    const bytes = Buffer.byteLength(JSON.stringify(answer));
    this.#places[path] = this.#scripts;
    this.#waiting.push([path, answer]);
    this.#waitingBytes += bytes;
    this.bytes += bytes;
    if (this.#waitingBytes >= SCRIPT_BYTES) await this.flush();
  }

  /** Begins another script. */
  async flush(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const answers = Object.fromEntries(this.#waiting);
    await this.#write(
      `data/${this.#scripts}.js`,
      `Object.assign(globalThis.temperExport.answers, ${parsedText(answers)});\n`,
    );
    this.#scripts += 1;
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  async end(): Promise<void> {
    await this.flush();
    await this.#writeManifest();
    await this.#write('index.html', INDEX);
  }

  #writeManifest(): Promise<void> {
    return this.#write(
      'data/manifest.js',
      `globalThis.temperExport = { answers: {}, places: ${parsedText(this.#places)} };\n`,
    );
  }

  #write(name: string, text: string): Promise<void> {
    return writeFile(join(this.#folder, name), text);
  }
}

/**
 * JSON in a string of a script: nothing of it is read as code, and a member `__proto__` is a member. `<` is an escape for
 * those who put the script into a document.
 */
function parsedText(value: object): string {
  const literal = JSON.stringify(JSON.stringify(value))
    .replaceAll('<', String.raw`\u003c`)
    .replaceAll('\u2028', String.raw`\u2028`)
    .replaceAll('\u2029', String.raw`\u2029`);
  return `JSON.parse(${literal})`;
}
