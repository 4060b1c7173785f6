/** Labels of the pages, and words of the terminal's lines, that the glossary explains. */
import { isAbsolute, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { findTerm, meaningOf, OTHER_LABELS, parseGlossary } from '../../browser/glossary.ts';
import { glossaryLine } from '../../cli/command-line/help.ts';
import { linesSince, NOTHING_TOLD } from '../../cli/watch/lines.ts';
import { planCharts } from '../../views/charts/charts.ts';
import { evaluation, fixtureState, summary } from '../cli/fixture-store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { readPage, ROOT } from './markdown.ts';

const TERMS = parseGlossary(readPage('docs/glossary.md'));
const explained = (labels: readonly string[]) => labels.filter((label) => findTerm(label, TERMS) !== null);

test('each term has a heading, a meaning of one sentence, and no mark of a link', () => {
  expect(TERMS.length).toBeGreaterThan(15);
  for (const found of TERMS) {
    expect(meaningOf(found), found.term).toMatch(/^[A-Z].{20,200}\.$/);
    expect(found.text, found.term).not.toMatch(/[[\]`#]|^Next/);
  }
});

test('words of the pages that a newcomer does not know are terms', () => {
  const words = ['Step', 'Group', 'Attempts', 'Advantage', 'entropy', 'Truncated', 'Held out', 'Adapter', 'Base model'];
  expect(explained(words)).toEqual(words);
  expect(findTerm('Seconds', TERMS)).toBeNull();
});

test('each other label leads to a term, and stands for no term itself', () => {
  const names = TERMS.map(({ term }) => term.toLowerCase());
  for (const [label, term] of Object.entries(OTHER_LABELS)) {
    expect(names, label).toContain(term);
    expect(names, term).not.toContain(label);
  }
});

test('charts of a run lead to the glossary', () => {
  const steps = [1, 2, 3].map((step) => ({ ...summary(step, 3), truncatedAttempts: step }));
  const titles = planCharts(steps, [evaluation(0, 0.5, 0), evaluation(3, 0.9, 0)]).map(({ title }) => title);
  expect(explained(titles).toSorted()).toEqual(['Reward', 'entropy', 'loss', 'truncated share']);
});

test("the terminal's lines of a step use words that the glossary has", () => {
  const step = { ...summary(1, 1), replacedGroups: 2, unused: {}, metrics: {} };
  const steps = [{ ...step, train: { ...step.train, oneSidedGroups: 1 } }];
  const [line = ''] = linesSince(NOTHING_TOLD, { state: { ...fixtureState('demo', 1), evals: [] }, steps }).lines;
  const words = ['step', 'reward', 'entropy', 'loss', 'groups', 'replaced', 'truncated', 'attempts'];
  expect(words.filter((word) => line.includes(word))).toEqual(words);
  expect(explained(words)).toEqual(words);
  expect(line).toContain('1 group one-sided');
  expect(explained(['one-sided group'])).toHaveLength(1);
});

test('help names the page of the package, by the shortest path that leads there', () => {
  expect(glossaryLine(ROOT)).toBe('What the terms mean: docs/glossary.md');
  const path = glossaryLine(temporaryFolder()).replace('What the terms mean: ', '');
  expect(isAbsolute(path)).toBe(true);
  expect(path).toBe(resolve(ROOT, 'docs/glossary.md'));
});
