/** tsx trusts the cache it finds: in a shared temporary directory, anybody could have put code there. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modulePath, nodeFlags } from '../../workers/process/module-path.ts';
import { addOtherUser, type OtherUser } from './attackers.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const TEMPER = fileURLToPath(new URL('../../cli/temper.js', import.meta.url));
const CHILD = modulePath('version');

/** Everybody's temporary directory, the user's cache, and the file that poisoned code writes. */
function surroundings() {
  const folder = temporaryFolder();
  const [temporary, cache, proof] = ['tmp', 'cache', 'proof'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [temporary, cache]) mkdirSync(path);
  chmodSync(folder, 0o755);
  chmodSync(temporary, 0o1777);
  const env = { ...process.env, TMPDIR: temporary, TEMPER_CACHE: cache, TSX_DISABLE_CACHE: undefined };
  const run = (args: readonly string[], TEST_CACHE = '') =>
    execFileSync(process.execPath, args, { env: { ...env, TEST_CACHE }, encoding: 'utf8', timeout: 20_000 });
  return { temporary, cache, proof, run };
}

/** Puts code before what tsx compiled; prints in how many files. One that the program's end cut off is left out. */
const POISON = `
  import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
  const [from, to, proof] = process.argv.slice(1);
  const code = 'import("node:fs").then(({ writeFileSync }) => writeFileSync(' + JSON.stringify(proof) + ', ""));';
  mkdirSync(to, { recursive: true });
  const parse = (text) => { try { return JSON.parse(text); } catch { return null; } };
  for (const name of readdirSync(from)) {
    const entry = parse(readFileSync(from + '/' + name, 'utf8'));
    if (entry !== null) writeFileSync(to + '/' + name, JSON.stringify({ ...entry, code: code + entry.code }));
  }
  console.log(JSON.stringify(readdirSync(to)));`;

let other: OtherUser | string;
beforeAll(() => {
  other = addOtherUser();
});
afterAll(() => {
  if (typeof other !== 'string') other.remove();
});

/** Another user of the machine writes, where one can be made for the test. */
function poison(from: string, to: string, proof: string): number {
  const args = ['--input-type=module', '-e', POISON, from, to, proof];
  const byOwn = () => JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as unknown[];
  return (typeof other === 'string' ? byOwn() : other.run(POISON, from, to, proof)).length;
}

const OWN = `tsx-${process.getuid?.()}`;
const TSX = ['--import', 'tsx'];
/** tsx writes its cache in a thread that ends with the program: the program waits for the first files. */
const UNTIL_CACHED = `
  import { readFileSync, readdirSync } from 'node:fs';
  const folder = process.env.TEST_CACHE + '/';
  const waiting = setInterval(() => {
    try {
      const texts = readdirSync(folder).map((name) => readFileSync(folder + name, 'utf8'));
      if (texts.map((text) => JSON.parse(text)).length > 0) clearInterval(waiting);
    } catch {}
  }, 20);`;
const LINGER = ['--import', `data:text/javascript,${encodeURIComponent(UNTIL_CACHED)}`];

describe('code that someone put into the temporary directory', () => {
  it.each([
    ['the command line', [], [TEMPER, '--version']],
    ['a process of the local stack', nodeFlags(), [CHILD]],
  ])('is run by tsx, but not in %s', (_, flags, program) => {
    const { temporary, cache, proof, run } = surroundings();
    const [common, own] = [join(temporary, OWN), join(cache, 'tsx', OWN)];
    run([...TSX, ...LINGER, ...program], common);
    const compiled = join(cache, 'compiled');
    renameSync(common, compiled);
    expect(poison(compiled, common, proof)).toBeGreaterThan(0);
    run([...TSX, ...LINGER, ...program], common);
    expect(existsSync(proof)).toBe(true);
    rmSync(proof);

    run([...flags, ...LINGER, ...program], own);
    expect(existsSync(proof)).toBe(false);
    expect(readdirSync(own).length).toBeGreaterThan(0);
  });

  it.each([
    ['is open to others', (cache: string) => mkdirSync(join(cache, 'tsx')), 0o777],
    ['is a link', (cache: string) => symlinkSync('../tmp', join(cache, 'tsx')), 0o700],
  ])('does not run from a cache folder that %s: nothing is cached', (_, make, mode) => {
    const { temporary, cache, run } = surroundings();
    make(cache);
    chmodSync(join(cache, 'tsx'), mode);
    run([...nodeFlags(), CHILD]);
    expect(readdirSync(join(cache, 'tsx'))).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
  });
});
