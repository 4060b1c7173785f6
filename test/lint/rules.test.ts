/** Our own lint rules, run by oxlint on files with a fault and on files without. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../temporary-folder.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Faults, and what is none. */
const RULES: Readonly<Record<string, readonly [faulty: readonly string[], clean: readonly string[]]>> = {
  'linear-regex': [
    ['/x+$/;', '/^(a|a)*$/;', String.raw`new RegExp('\\s*\\n');`, 'RegExp(`${a}+$`);', '/[a-z]{3,900}$/;'],
    [
      '/^x+$/;',
      '/(?<!x)x+$/;',
      '/^[a-z]{3,900}$/;',
      'new RegExp(a);',
      '// oxlint-disable-next-line temper/linear-regex\n/x+$/;',
    ],
  ],
  durations: [
    [
      'const since = Date.now(); f(Date.now() - since);',
      'class A { #at = Date.now(); age() { return this.#at < Date.now(); } }',
      'const at = new Map(); at.set(1, Date.now()); f(Date.now() - (at.get(1) ?? 0));',
      'const run = { began: Date.now() }; f(Date.now() - run.began);',
    ],
    ['const since = performance.now(); f(performance.now() - since);', 'f(Date.now() - file.mtimeMs);'],
  ],
  'child-exit': [
    [
      "const child = spawn('a'); child.on('close', f);",
      "function g(it: ChildProcess) { it.once('close', f); }",
      "const child = spawn('a'); await once(child, 'close');",
    ],
    ["const child = spawn('a'); child.on('exit', f);", "server.on('close', f);"],
  ],
  'bounded-answer': [
    ['await response.text();', 'f(await (await fetch(a)).json());'],
    ['blob.text;', 'Response.json({});'],
  ],
  'quadratic-spread': [
    ['const all = f(); all.filter((each) => each === Math.max(...all));'],
    [
      'const all = f(); const most = Math.max(...all);',
      'f((each) => { const own = g(each); return Math.min(...own); });',
    ],
  ],
};

test.each(Object.entries(RULES))('%s finds its faults, and nothing else', (rule, [faulty, clean]) => {
  const folder = temporaryFolder();
  const config = {
    jsPlugins: [here('rules.js')],
    categories: { correctness: 'off' },
    rules: { [`temper/${rule}`]: 'error' },
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  for (const [index, code] of faulty.entries()) writeFileSync(join(folder, `faulty-${index}.ts`), code);
  for (const [index, code] of clean.entries()) writeFileSync(join(folder, `clean-${index}.ts`), code);
  const args = [
    here('../../node_modules/oxlint/bin/oxlint'),
    '-c',
    join(folder, 'config.json'),
    '--format',
    'json',
    folder,
  ];
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string; filename: string }[] };
  const found = diagnostics.map(({ code, filename }) => `${code} ${filename.replace(/.*\//, '')}`).toSorted();
  expect(found).toEqual(faulty.map((_, index) => `temper(${rule}) faulty-${index}.ts`));
});
