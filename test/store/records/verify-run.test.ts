import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';

import { TemperError } from '../../../core/contract/failures.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { manifestKey, manifestTimesKey, prunedKey, runKey } from '../../../store/layout.ts';
import { hashBytes } from '../../../store/bytes/sha256.ts';
import { readContents } from '../../../store/records/copy/contents.ts';
import { findPosition } from '../../../store/records/runs/positions.ts';
import { readManifest } from '../../../store/records/runs/run-reader.ts';
import type { Findings } from '../../../store/records/verify/findings.ts';
import { verifyRun } from '../../../store/records/verify/verify-run.ts';
import { EXAMPLES, makeBranch, makeRun } from './made-run.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let root: string;
let store: FileStore;
beforeEach(() => {
  root = temporaryFolder();
  store = new FileStore(root);
});

const verify = async (run = 'demo'): Promise<Findings> => (await verifyRun(store, run)).findings;
const counts = ({ tallies }: Findings) =>
  Object.fromEntries([...tallies].map(([check, { checked }]) => [check, checked]));
const place = (step: number) => ({ run: 'demo', branch: 0, step });

function flip(key: string, at: number): void {
  const bytes = readFileSync(join(root, key));
  bytes[at] = bytes[at]! ^ 1;
  writeFileSync(join(root, key), bytes);
}

test('a whole run has no problems, and everything in it was looked at', async () => {
  await makeRun(store, { still: 1, empty: 2, evals: { 0: 0.25, 3: 1 } });
  const findings = await verify();
  expect(findings.problems).toEqual([]);
  expect(findings.notes).toEqual([]);
  expect(counts(findings)).toEqual({
    'run files': 4,
    manifests: 3,
    parents: 2,
    adapters: 4,
    'optimizer states': 3,
    rollouts: 10,
    verdicts: 13,
    evaluations: 2,
    inputs: 18,
  });
});

describe('supervised steps', () => {
  test('have no groups and no verdict, and are held to the examples that their run deals', async () => {
    await makeRun(store, { warmStart: 2, evals: { 2: 0.5 } });
    const findings = await verify();
    expect(findings.problems).toEqual([]);
    expect(counts(findings)).toMatchObject({ manifests: 4, rollouts: 2, evaluations: 1, 'run files': 5 });
    expect(await findPosition(store, 'demo')).toMatchObject({ step: 3, dealt: 2, emptySteps: 0 });
  });

  test('that train other examples, or were trained of other bytes, are told', async () => {
    await makeRun(store, { steps: 2, warmStart: 1 });
    const file = join(root, manifestKey(place(1)));
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"examples":\[(\d),/, '"examples":[8,'));
    expect((await verify()).problems.map(({ object }) => object)).toContain(manifestKey(place(1)));
    rmSync(join(root, manifestTimesKey(place(1))));
    rmSync(join(root, 'runs/demo/branches/0/steps/2'), { recursive: true });
    const [problem] = (await verify()).problems;
    expect(problem).toMatchObject({ finding: 'it trains other examples than its run deals to this step' });
    const dataset = `blobs/${hashBytes(EXAMPLES)}`;
    flip(dataset, 3);
    expect((await verify()).problems.map(({ object }) => object)).toContain(dataset);
  });

  test('are copied with their examples', async () => {
    await makeRun(store, { steps: 2, warmStart: 1 });
    expect((await readContents(store, 'demo')).blobs.map(({ sha256 }) => sha256)).toContain(hashBytes(EXAMPLES));
  });
});

describe('a run with roles', () => {
  const roles = {
    white: { kind: 'policy', policy: 'main' },
    black: { kind: 'policy', policy: 'b' },
    past: { kind: 'league', policy: 'main', every: 1, keep: 2 },
  } as const;

  test('is what its plan says, with the weights of all policies and the opponents of its league', async () => {
    const made = await makeRun(store, { roles, empty: 2, steps: 4, evals: { 0: 0.25, 4: 1 } });
    await makeBranch(store, made, 1, 3, 2);
    const findings = await verify();
    expect(findings.problems).toEqual([]);
    // Those of two policies for each of six commits, one of them begins on a branch, and their common config.
    expect(counts(findings)).toMatchObject({ adapters: 13, 'optimizer states': 12 });
    // A resumed run goes on with the same opponents.
    expect((await findPosition(store, 'demo')).league).toEqual(made.positions[4]!.league);
  });

  test('whose scores do not follow from what was played is told', async () => {
    await makeRun(store, { roles });
    const key = 'runs/demo/branches/0/steps/2/manifest.json';
    const manifest = JSON.parse(readFileSync(join(root, key), 'utf8')) as { league: { past: { won: number }[] } };
    manifest.league.past[0]!.won += 1;
    writeFileSync(join(root, key), JSON.stringify(manifest));
    const { problems } = await verify();
    expect(problems.map(({ object }) => object)).toContain(key);
  });
});

test('a group whose attempts were all cut is replaced', async () => {
  await makeRun(store, { cut: 2 });
  expect((await verify()).problems).toEqual([]);
  expect((await readManifest(store, place(2)))?.groups.map(({ group }) => group)).toEqual([1, 2]);
});

test('a run that is being written is whole up to its last commit', async () => {
  await makeRun(store, { steps: 3 });
  const { step, ...state } = JSON.parse(readFileSync(join(root, 'runs/demo/state.json'), 'utf8')) as { step: number };
  await store.replace(
    'runs/demo/state.json',
    encodeJson({ ...state, step: step - 1, state: 'running', phase: 'rollout' }),
  );
  rmSync(join(root, manifestKey(place(3))));
  rmSync(join(root, 'runs/demo/branches/0/steps/3/groups/1.judged.json'));
  expect((await verify()).problems).toEqual([]);
});

test('a name that no run has is bad input', async () => {
  await expect(verify()).rejects.toBeInstanceOf(TemperError);
});

describe('one flipped bit', () => {
  /** Every file under a hash, a bit near its beginning, its middle and its end. */
  const isDisplay = (file: string) =>
    /scenarios\.jsonl$|times\.json$|state\.json$|\/steps\/\d+\.\d+\.jsonl$/.test(file);

  test('is found in every file that a hash covers, and the file is named', async () => {
    await makeRun(store, { still: 1, evals: { 0: 0.25, 3: 1 } });
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) =>
      statSync(join(root, file)).isFile(),
    );
    const kept = files.filter(
      (file) => !isDisplay(file) && !file.endsWith('run.json') && !file.endsWith('prepared.json'),
    );
    expect(kept.length).toBeGreaterThan(30);
    for (const file of kept) {
      const bytes = readFileSync(join(root, file));
      for (const at of [1, Math.floor(bytes.length / 2), bytes.length - 2]) {
        flip(file, at);
        const { problems } = await verify();
        const told = problems.map(({ object, finding, remedy }) => `${object}: ${finding}; ${remedy}`).join('\n');
        expect(told, `${file} at ${at}`).toContain(file);
        expect(problems.length, `${file} at ${at}: ${told}`).toBeLessThan(3);
        writeFileSync(join(root, file), bytes);
      }
    }
    expect((await verify()).problems).toEqual([]);
  });

  test.each([
    ['the seed', '"seed":1', '"seed":3'],
    ['the temperature', '"temperature":1', '"temperature":2'],
    ['the group size', '"groupSize":2', '"groupSize":3'],
    ['the number of groups', '"groupsPerStep":2', '"groupsPerStep":3'],
    ['the code of the agent', '"agentCodeSha256":"5', '"agentCodeSha256":"4'],
    ['the name', '"run":"demo"', '"run":"dem0"'],
    ['its syntax', '{"schema":1,', '{"schema":1;'],
  ])('%s in run.json is found', async (_, before, after) => {
    await makeRun(store);
    const file = join(root, runKey('demo'));
    const content = readFileSync(file, 'utf8');
    expect(content).toContain(before);
    writeFileSync(file, content.replace(before, after));
    expect((await verify()).problems.length).toBeGreaterThan(0);
  });
});

test('a file that was cut, and one that is gone, is found and named', async () => {
  await makeRun(store, { evals: { 3: 1 } });
  const { adapter, optimizer } = (await readManifest(store, place(2)))!;
  const step = 'runs/demo/branches/0/steps/2';
  const keys = [
    adapter.key,
    optimizer.key,
    `${step}/groups/0.rollouts.jsonl.gz`,
    `${step}/groups/0.judged.json`,
    `${step}/verdict.json`,
  ];
  keys.push(
    `${step}/manifest.json`,
    runKey('demo'),
    'runs/demo/prepared.json',
    'runs/demo/branches/0/steps/3/eval.rollouts.jsonl.gz',
  );
  for (const key of keys) {
    const bytes = readFileSync(join(root, key));
    truncateSync(join(root, key), bytes.length - 3);
    expect(
      (await verify()).problems.map(({ object }) => object),
      `${key} cut`,
    ).toContain(key);
    rmSync(join(root, key));
    expect(
      (await verify()).problems.map(({ object }) => object),
      `${key} gone`,
    ).toContain(key);
    writeFileSync(join(root, key), bytes);
  }
  expect((await verify()).problems).toEqual([]);
});

test('what is only for display is told apart', async () => {
  await makeRun(store);
  truncateSync(join(root, 'runs/demo/state.json'), 20);
  const { problems } = await verify();
  expect(problems).toMatchObject([
    { object: 'runs/demo/state.json', remedy: expect.stringContaining('only for display') as string },
  ]);
});

test('weights that were pruned are no problem, weights that are gone without a word are', async () => {
  await makeRun(store);
  const { adapter, optimizer } = (await readManifest(store, place(1)))!;
  for (const { key } of [adapter, optimizer]) rmSync(join(root, key));
  expect((await verify()).problems.map(({ object }) => object)).toEqual([adapter.key, optimizer.key]);
  await store.publish(prunedKey(place(1)), encodeJson({ schema: 1, pruned: true }));
  const findings = await verify();
  expect(findings.problems).toEqual([]);
  expect(findings.tallies.get('adapters')).toEqual({ checked: 4, pruned: 1, problems: 0 });
});

test('the chat template of a run is there, with its own bytes', async () => {
  const { config } = await makeRun(store, { chatTemplate: 'said: {{ messages[0].content }}' });
  const findings = await verify();
  expect([findings.problems, counts(findings)['run files']]).toEqual([[], 5]);
  const key = `blobs/${config.rollout.chatTemplateSha256}`;
  flip(key, 3);
  expect((await verify()).problems).toMatchObject([{ object: key, finding: expect.stringContaining('other bytes') }]);
  rmSync(join(root, key));
  expect((await verify()).problems).toMatchObject([{ object: key, finding: expect.stringContaining('missing') }]);
});
