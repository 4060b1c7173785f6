/** Links of the pages lead somewhere, to the heading too; the index has each page once; each page of the guide says what to read next; the glossary has its terms. */
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { PAGES, readPage, ROOT, withoutBlocks } from './markdown.ts';

/** Lists and records, which are looked up and not read through. */
const WITHOUT_NEXT = new Set(['docs/decisions.md', 'docs/index.md', 'docs/log.md']);
/** For contributors: linked from the pages that they belong to. */
const isInternal = (page: string) => page.startsWith('docs/internal/');
const isRead = (page: string) => !WITHOUT_NEXT.has(page) && !isInternal(page);

/** Terms that commands, the dashboard and other pages use without an explanation. */
const TERMS =
  'scenario attempt rollout reward judge group advantage step policy base-model adapter checkpoint run branch fork held-out-set loss entropy truncated one-sided-group replaced-group journal store';

/** Anchors that GitHub makes of a heading. */
const anchorsOf = (page: string) =>
  [...withoutBlocks(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );

const linksOf = (page: string) => [...withoutBlocks(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);

test.each(PAGES)('each link of %s leads to a file and a heading that exist', (page) => {
  for (const link of linksOf(page).filter((each) => !each.includes('://'))) {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : join(dirname(page), path);
    expect(existsSync(join(ROOT, target)), link).toBe(true);
    if (anchor !== undefined) expect(anchorsOf(target), link).toContain(anchor);
  }
});

test('docs/index.md has a row for each page of the guide, and links no page twice', () => {
  const linked = linksOf('docs/index.md').filter((link) => !link.startsWith('..') && !link.startsWith('internal/'));
  const guide = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/index.md' && !isInternal(page));
  expect(linked.toSorted()).toEqual(guide.map((page) => page.replace('docs/', '')).toSorted());
});

test.each(PAGES.filter(isInternal))('%s is linked from a page of the guide', (page) => {
  const linked = PAGES.filter((each) => !isInternal(each)).flatMap((each) =>
    linksOf(each).map((link) => join(dirname(each), link.split('#')[0]!)),
  );
  expect(linked).toContain(page);
});

test('each picture is on a page', () => {
  const shown = PAGES.flatMap((page) => linksOf(page)).map((link) => basename(link));
  expect(readdirSync(join(ROOT, 'docs/pictures')).filter((picture) => !shown.includes(picture))).toEqual([]);
});

test('results of three seeds in examples/README.md stand in the README of their example', () => {
  const rows = readPage('examples/README.md').matchAll(/^\| ([\w-]+)[^|\n]*three seeds.*$/gm);
  for (const [row, example] of rows)
    for (const result of row.match(/−?\d\.\d{3}/g)!)
      expect(readPage(`examples/${example}/README.md`), example).toContain(result);
});

test.each(PAGES.filter(isRead))('%s ends with what to read next', (page) => {
  const [, ...parts] = readPage(page).split(/^(?=Next: |## Next$)/m);
  expect(parts, 'one line Next: …, or a heading Next with a list').toHaveLength(1);
  expect(linksOf(page).some((link) => parts[0]!.includes(`](${link})`))).toBe(true);
});

test.each(TERMS.split(' '))('the glossary explains %s in a few words, below a heading of its own', (term) => {
  const headings = anchorsOf('docs/glossary.md');
  expect(headings.filter((heading) => heading === term)).toHaveLength(1);
  const entry = readPage('docs/glossary.md').split(/^#+ .*$/m)[headings.indexOf(term) + 1]!;
  const words = entry.split(/\s+/).filter(Boolean).length;
  expect(words).toBeGreaterThan(5);
  expect(words).toBeLessThan(60);
});

test.each(PAGES)('%s holds no mark of a merge', (page) => {
  expect(readPage(page)).not.toMatch(/^(<{7}|>{7}|={7}$)/m);
});
