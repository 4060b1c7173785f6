/** tsx trusts the cache it finds: in a shared temporary directory, anybody could have put code there. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { modulePath, nodeFlags } from '../../workers/module-path.ts';
import { addOtherUser } from './attackers.ts';
import type { OtherUser } from './attackers.ts';

const TEMPER = fileURLToPath(new URL('../../cli/temper.js', import.meta.url));
const CHILD = modulePath('lines');
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Everybody's temporary directory, the user's cache, and the file that poisoned code writes. */
function surroundings() {
  const folder = mkdtempSync(join(tmpdir(), 'temper-cache-'));
  folders.push(folder);
  const [temporary, cache, proof] = ['tmp', 'cache', 'proof'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [temporary, cache]) mkdirSync(path);
  chmodSync(folder, 0o755);
  chmodSync(temporary, 0o1777);
  const env = { ...process.env, TMPDIR: temporary, TEMPER_CACHE: cache, TSX_DISABLE_CACHE: undefined };
  const run = (...args: string[]) => execFileSync(process.execPath, args, { env, encoding: 'utf8' });
  return { temporary, cache, proof, run };
}

/** Puts code before what tsx compiled; prints in how many files. */
const POISON = `
  import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
  const [from, to, proof] = process.argv.slice(1);
  const code = 'import("node:fs").then(({ writeFileSync }) => writeFileSync(' + JSON.stringify(proof) + ', ""));';
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    const entry = JSON.parse(readFileSync(from + '/' + name, 'utf8'));
    writeFileSync(to + '/' + name, JSON.stringify({ ...entry, code: code + entry.code }));
  }
  console.log(JSON.stringify(readdirSync(to)));`;

let other: OtherUser | string;
beforeAll(() => {
  other = addOtherUser();
});
afterAll(() => {
  if (typeof other !== 'string') other.remove();
});

/** By another user of the machine, where one can be made for the test. */
function poison(from: string, to: string, proof: string): number {
  const args = ['--input-type=module', '-e', POISON, from, to, proof];
  const byOwn = () => JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as unknown[];
  return (typeof other === 'string' ? byOwn() : other.run(POISON, from, to, proof)).length;
}

const OWN = `tsx-${process.getuid?.()}`;
const TSX = ['--import', 'tsx'];
/** tsx writes its cache beside the program, which must not end first. */
const LINGER = ['--import', 'data:text/javascript,setTimeout(() => {}, 500)'];

describe.skipIf(process.platform === 'win32')('code that someone put into the temporary directory', () => {
  it.each([
    ['the command line', [...TSX, TEMPER, '--version'], [TEMPER, '--version']],
    ['a process of the local stack', [...TSX, ...LINGER, CHILD], [...nodeFlags(), ...LINGER, CHILD]],
  ])('is run by tsx, but not in %s', (_, plain, temper) => {
    const { temporary, cache, proof, run } = surroundings();
    run(...plain);
    const compiled = join(cache, 'compiled');
    renameSync(join(temporary, OWN), compiled);
    expect(poison(compiled, join(temporary, OWN), proof)).toBeGreaterThan(0);
    run(...plain);
    expect(existsSync(proof)).toBe(true);
    rmSync(proof);

    run(...temper);
    expect(existsSync(proof)).toBe(false);
    expect(readdirSync(join(cache, 'tsx', OWN)).length).toBeGreaterThan(0);
  });

  it.each([
    ['is open to others', (cache: string) => mkdirSync(join(cache, 'tsx')), 0o777],
    ['is a link', (cache: string) => symlinkSync('../tmp', join(cache, 'tsx')), 0o700],
  ])('does not run from a cache folder that %s: nothing is cached', (_, make, mode) => {
    const { temporary, cache, run } = surroundings();
    make(cache);
    chmodSync(join(cache, 'tsx'), mode);
    run(...nodeFlags(), CHILD);
    expect(readdirSync(join(cache, 'tsx'))).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  });
});
