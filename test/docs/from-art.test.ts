/** The page for users of ART has a row for everything that ART exports, and none for what it does not. */
import { expect, test } from 'vitest';
import exportsOfArt from './art-exports.json' with { type: 'json' };
import { readPage, withoutBlocks } from './markdown.ts';

const PAGE = 'docs/from-art.md';
const { version, modules, commands, parameters } = exportsOfArt;
const exported = Object.entries(modules).flatMap(([name, names]) => names.map((each) => `${name}.${each}`));

const sections = withoutBlocks(PAGE).split(/^## /m);
const sectionOf = (heading: string) => sections.find((section) => section.startsWith(`${heading}\n`)) ?? '';
/** Code in the first cell of each row, in its order. */
const rowsOf = (section: string) =>
  [...section.matchAll(/^\| (.*?) \|/gm)].map(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code),
  );

/** `art.dev.InitArgs` names its module, and a bare name after it in the same cell is of that module too. */
function exportsIn(codes: readonly string[]): string[] {
  let module: string | null = null;
  return codes.flatMap((code) => {
    const [, named, name] = /^(art(?:\.\w+)*)\.(\w+)$/.exec(code) ?? [];
    if (named !== undefined) module = named;
    if (name !== undefined) return [`${named}.${name}`];
    return module === null || !/^\w+$/.test(code) ? [] : [`${module}.${code}`];
  });
}

const OLDER = 'Names of older versions';
const rows = sections.filter((section) => !section.startsWith(OLDER)).flatMap(rowsOf);

test('the page says which version of ART it is about', () => {
  expect(readPage(PAGE)).toContain(`every export of ART ${version};`);
});

test('each export of ART has a row, and each row names an export', () => {
  const named = rows.flatMap(exportsIn);
  expect(named).toContain('art.dev.TinkerNativeArgs');
  expect(exported.filter((name) => !named.includes(name))).toEqual([]);
  expect(named.filter((name) => !exported.includes(name))).toEqual([]);
});

test('each command of ART has a row', () => {
  const named = rowsOf(sectionOf('Command line')).flat();
  expect(commands.filter((command) => !named.includes(command))).toEqual([]);
});

test.each([
  ['backend.train', 'Training'],
  ['PipelineTrainer', 'Pipelined training'],
] as const)('each parameter of %s has a row', (call, heading) => {
  const named = rowsOf(sectionOf(heading)).flat();
  expect(parameters[call].filter((name) => !named.includes(name))).toEqual([]);
});

test('a name of an older version is none of today', () => {
  const named = rowsOf(sectionOf(OLDER)).flatMap(exportsIn);
  expect(named).toContain('art.LocalBackend');
  expect(named.filter((name) => exported.includes(name))).toEqual([]);
});
