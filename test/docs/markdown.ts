/** The pages that people read, and the fenced blocks in them. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const PAGES = [
  'README.md',
  ...readdirSync(`${ROOT}/docs`).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
  ...readdirSync(`${ROOT}/examples`).map((name) =>
    name.endsWith('.md') ? `examples/${name}` : `examples/${name}/README.md`,
  ),
];

export interface Block {
  readonly page: string;
  /** Of its first line of code. */
  readonly line: number;
  /** What stands behind the fence, such as `ts`. */
  readonly info: string;
  readonly code: string;
}

export const readPage = (page: string): string => readFileSync(`${ROOT}/${page}`, 'utf8');

export function blocksOf(page: string): Block[] {
  const text = readPage(page);
  return [...text.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].map(({ 1: info = '', 2: code = '', index }) => ({
    page,
    line: text.slice(0, index).split('\n').length + 1,
    info: info.trim(),
    code,
  }));
}

export const isTypeScript = ({ info }: Block): boolean => /^(ts|typescript)\b/.test(info);
