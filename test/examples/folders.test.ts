/** Each folder of examples can be copied alone: its files import their own folder and packages, and its page runs its own files. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf, readPage, ROOT } from '../docs/markdown.ts';

const EXAMPLES = join(ROOT, 'examples');
const folders = readdirSync(EXAMPLES).filter((name) => !name.endsWith('.md'));

/** Paths in the folder of examples; what is installed or written there is left out. */
function filesOf(folder: string): string[] {
  const entries = readdirSync(join(EXAMPLES, folder), { withFileTypes: true });
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    return entry.name === 'node_modules' ? [] : filesOf(path);
  });
}

const IMPORTED = /(?:from|import) '(\.[^']*)'|import\('(\.[^']*)'\)|new URL\('(\.[^']*)'/g;

test.each(folders)('%s imports nothing of another folder', (folder) => {
  for (const file of filesOf(folder).filter((each) => each.endsWith('.ts'))) {
    const imports = [...readFileSync(join(EXAMPLES, file), 'utf8').matchAll(IMPORTED)];
    for (const [, from, later, url] of imports) {
      const target = join(EXAMPLES, dirname(file), from ?? later ?? url ?? '');
      expect(relative(EXAMPLES, target).split('/')[0], `${file} imports ${target}`).toBe(folder);
    }
  }
});

test.each(folders)('the commands on the page of %s name its own files', (folder) => {
  const commands = blocksOf(`examples/${folder}/README.md`).map(({ code }) => code);
  const named = commands.flatMap((code) =>
    [...code.matchAll(/(?<!test\/)\bexamples\/([\w-]+)/g)].map(([, name]) => name),
  );
  expect(new Set(named)).toEqual(new Set(named.length === 0 ? [] : [folder]));
});

test('each example has its place in the order of reading, once', () => {
  const linked = [...readPage('examples/README.md').matchAll(/\]\(([\w-]+)\/README\.md\)/g)].map(([, name]) => name!);
  expect(linked.toSorted()).toEqual(folders.toSorted());
});

test('the copies of the game of tic-tac-toe are the same', () => {
  const copies = ['own-loop', 'production', 'tic-tac-toe-ruler'].map((folder) =>
    readFileSync(join(EXAMPLES, folder, 'game.ts'), 'utf8'),
  );
  expect(new Set(copies).size).toBe(1);
});
