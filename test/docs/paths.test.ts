/** Files and folders of the tree that pages and AGENTS.md name in code exist. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { HISTORY, PAGES, readPage, ROOT, withoutBlocks } from './markdown.ts';

const TOP = 'core|workflows|activities|store|play|sdk|workers|cli|gpu-worker|test|bench|docs|examples';
/** `core/numbers/seeds.ts`, `play/dialects/`; not `cli/<command>/command.ts`, `core/plan/*.ts`, nor what is installed. */
const PATHS = new RegExp(`\`((?:${TOP})/(?![^\`]*node_modules)[\\w./-]*)\``, 'g');

const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' });
const files = tracked.trim().split('\n');
const isThere = (path: string): boolean => files.some((file) => file === path || file.startsWith(folder(path)));
const folder = (path: string): string => (path.endsWith('/') ? path : `${path}/`);

test.each(['AGENTS.md', ...PAGES.filter((page) => !HISTORY.has(page))])('%s names files that exist', (page) => {
  const named = [...withoutBlocks(page).matchAll(PATHS)].map(([, path = '']) => path);
  expect(named.filter((path) => !isThere(path))).toEqual([]);
});

test('a path that does not exist is found', () => {
  expect(readPage('AGENTS.md').match(PATHS)).toContain('`core/contract/schema-defaults.ts`');
  expect(['core/numbers/seeds.ts', 'core', 'core/seed', 'core/seeds.tsx'].filter(isThere)).toEqual([
    'core/numbers/seeds.ts',
    'core',
  ]);
});
