/** The pages that people read, and the fenced blocks in them. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const pagesIn = (folder: string) =>
  readdirSync(`${ROOT}/${folder}`).flatMap((name) => (name.endsWith('.md') ? [`${folder}/${name}`] : []));

/** Their code needs SDKs that test/installation alone has. */
export const SDK_PAGES = pagesIn('docs/sdks');
/** Records of what was: decisions and measurements name the commands and files of their day. */
export const HISTORY: ReadonlySet<string> = new Set(['docs/decisions.md', 'docs/log.md']);
export const PAGES = [
  'README.md',
  ...pagesIn('docs'),
  ...pagesIn('docs/internal'),
  ...SDK_PAGES,
  ...readdirSync(`${ROOT}/examples`).map((name) =>
    name.endsWith('.md') ? `examples/${name}` : `examples/${name}/README.md`,
  ),
];

export interface Block {
  readonly page: string;
  /** Number of its first line of code. */
  readonly line: number;
  /** The word behind the fence, such as `ts`. */
  readonly info: string;
  readonly code: string;
}

export const readPage = (page: string): string => readFileSync(`${ROOT}/${page}`, 'utf8');

/** A block may stand in a step of a list, indented. */
const FENCED = /^( *)```([^\n]*)\n(.*?)^\1```$/gms;

export function blocksOf(page: string): Block[] {
  const text = readPage(page);
  return [...text.matchAll(FENCED)].map(({ 1: indent = '', 2: info = '', 3: code = '', index }) => ({
    page,
    line: text.slice(0, index).split('\n').length + 1,
    info: info.trim(),
    code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));
}

export const withoutBlocks = (page: string): string => readPage(page).replaceAll(FENCED, '');

export const isTypeScript = ({ info }: Block): boolean => /^(ts|typescript)\b/.test(info);
