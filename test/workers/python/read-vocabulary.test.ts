/** The vocabulary of a base model on this machine, for a store that lacks it; the programs are stand-ins. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

import { makeVocabulary, type LocalModel } from '../../../workers/python/read-vocabulary.ts';
import written from '../../store/records/vocabulary.json' with { type: 'json' };
import { fakePrograms, type FakePrograms } from '../install/fake-programs.ts';

let programs: FakePrograms;
beforeEach(() => (programs = fakePrograms()));

const calls = (): string => join(programs.folder, 'calls');
const model = (): LocalModel => ({ baseModel: 'pocket', source: null, folder: join(programs.folder, 'cache') });
const options = (more: NodeJS.ProcessEnv = {}) => ({
  env: { ...programs.env, ...more },
  cache: join(programs.folder, 'environments'),
  onEvent: () => undefined,
});

/** A Python that has all packages, and notes what it is called with. */
function pythonThat(body: string) {
  const note = `fs.appendFileSync(${JSON.stringify(calls())}, args.join(' ') + ' ' + process.env.HF_HUB_OFFLINE + '\\n');`;
  const to = "const to = args[args.indexOf('--to') + 1];";
  programs.add('python', `if (args[0] === '-c') console.log('missing:'); else { ${note} ${to} ${body} }`);
  return options({ TEMPER_PYTHON: join(programs.folder, 'bin', 'python') });
}
const WRITES = `fs.writeFileSync(to, Buffer.from('${written.base64}', 'base64')); console.log('{"tokens":21}');`;

test('Python reads the tokenizer once, without the network, and the file is kept for the next process', async () => {
  const python = pythonThat(WRITES);
  const [first, second] = await Promise.all([makeVocabulary(model(), python), makeVocabulary(model(), python)]);
  expect(Buffer.from(first!.bytesOf(1)).toString()).toBe(' b');
  expect(second).toBe(first);
  const [kept, ...others] = readdirSync(model().folder);
  expect(others).toEqual([]);
  expect(readFileSync(calls(), 'utf8')).toMatch(/^-m temper_gpu\.process\.vocabulary --model pocket --to \S+ 1\n$/);
  expect(readFileSync(join(model().folder, kept!))).toEqual(Buffer.from(written.base64, 'base64'));
});

test('models of the same name from two places have vocabularies of their own', async () => {
  const python = pythonThat(WRITES);
  await makeVocabulary({ ...model(), source: '/one' }, python);
  await makeVocabulary({ ...model(), source: '/two' }, python);
  expect(readdirSync(model().folder)).toHaveLength(2);
});

test('a base model that is not on this machine has none, and is not asked for again', async () => {
  const python = pythonThat("console.error('BadConfig: model pocket must be a folder'); process.exit(2);");
  expect(await makeVocabulary(model(), python)).toBe(null);
  expect(await makeVocabulary(model(), python)).toBe(null);
  expect(readFileSync(calls(), 'utf8').trimEnd().split('\n')).toHaveLength(1);
  expect(readdirSync(model().folder)).toEqual([]);
});

test('a Python that lacks packages is as good as none', async () => {
  programs.add('python', "console.log('missing: torch');");
  expect(await makeVocabulary(model(), options({ TEMPER_PYTHON: join(programs.folder, 'bin', 'python') }))).toBe(null);
});

test('nothing is installed where there is no environment', async () => {
  expect(await makeVocabulary(model(), options())).toBe(null);
  expect(existsSync(options().cache)).toBe(false);
  expect(existsSync(model().folder)).toBe(false);
});

test('a broken file of the cache is an error that names it', async () => {
  const python = pythonThat("fs.writeFileSync(to, 'x'); console.log('{}');");
  await expect(makeVocabulary(model(), python)).rejects.toThrow(/cache\/vocabulary-[0-9a-f]{32}\.json\.gz must be/);
  writeFileSync(join(model().folder, readdirSync(model().folder)[0]!), Buffer.from(written.base64, 'base64'));
  expect(await makeVocabulary(model(), python)).not.toBe(null);
});
