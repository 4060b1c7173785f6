/** A project whose temporal.config.ts names a bucket: every command that reads works on it. */
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { isFinal } from '../../cli/watch/follow-run.ts';
import { showRun } from '../../cli/watch/watch-run.ts';
import type { Viewer } from '../../cli/watch/viewer.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { stateKey } from '../../store/layout.ts';
import { BUCKET } from '../s3-server.ts';
import { runTemper } from '../stack.ts';
import { writeAgent } from './agents.ts';
import { fixtureState, writeFixtureRun } from './fixture-store.ts';
import { runCli } from './run-cli.ts';
import { sharedS3 } from '../shared-s3.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const server = await sharedS3();

async function projectWith(storeUri: string): Promise<string> {
  const project = temporaryFolder();
  writeFileSync(join(project, 'temporal.config.ts'), `export default { store: '${storeUri}' };\n`);
  return project;
}

test('runs, show and report read a run from the bucket', async () => {
  const storeUri = `s3://${BUCKET}/team/runs`;
  const project = await projectWith(storeUri);
  await writeFixtureRun(project, { steps: 2, storeUri });
  const runs = await runCli(project, ['runs', '--json']);
  expect(JSON.parse(runs.stdout)).toMatchObject({ runs: [{ run: 'demo', state: 'completed' }], unreadable: [] });
  const shown = await runCli(project, ['show', 'demo', '--json']);
  expect(JSON.parse(shown.stdout)).toMatchObject({ store: storeUri, row: { step: 2 } });
  expect(await runCli(project, ['report', 'demo', '--out', 'report.html'])).toMatchObject({ exitCode: 0, stderr: '' });
  const report = readFileSync(join(project, 'report.html'), 'utf8');
  expect(report).toContain('"store":"runs"');
  expect(report).not.toContain('test-secret');
});

test('train and doctor say in one line what is wrong with the bucket', async () => {
  const project = await projectWith('s3://no-such-bucket/runs');
  const trained = await runCli(project, ['train', await writeAgent(project), '--base-model', 'pocket']);
  expect(trained).toMatchObject({ exitCode: 2, stdout: '' });
  expect(trained.stderr.replace(/http:\S+/, 'ENDPOINT')).toContain('refused (NoSuchBucket): there is no such bucket');
  const checked = await runCli(project, ['doctor', '--json'], { env: process.env });
  expect(JSON.parse(checked.stdout)).toContainEqual(expect.objectContaining({ name: 'store', ok: false }));
});

test('what nothing needs goes from the bucket, and a run that is deleted', async () => {
  const storeUri = `s3://${BUCKET}/swept`;
  const project = await projectWith(storeUri);
  const store = await writeFixtureRun(project, { steps: 1, storeUri });
  const orphan = await store.putBlob(Buffer.from('of no run'));
  const longAgo = new Date(Date.UTC(2020, 1, 2));
  utimesSync(server.file(`swept/${orphan.key}`), longAgo, longAgo);
  const swept = await runCli(project, ['gc', '--remove', '--json']);
  expect(JSON.parse(swept.stdout)).toMatchObject({
    removed: true,
    bytes: 9,
    objects: [{ kind: 'blob', key: orphan.key }],
  });
  expect(await store.blobBytes(orphan)).toBeNull();
  expect(await runCli(project, ['checkpoints', 'delete', 'demo', '--all'])).toMatchObject({ exitCode: 0, stderr: '' });
  expect(JSON.parse((await runCli(project, ['runs', '--json'])).stdout)).toEqual({ runs: [], unreadable: [] });
  expect(existsSync(server.file('swept/deletions/demo/deletion.json'))).toBe(false);
});

test('doctor finds a good bucket writable', async () => {
  const project = await projectWith(`s3://${BUCKET}/fresh`);
  const { stdout } = await runCli(project, ['doctor', '--json'], { env: process.env });
  expect(JSON.parse(stdout)).toContainEqual(
    expect.objectContaining({ name: 'store', ok: true, detail: `s3://${BUCKET}/fresh` }),
  );
});

test('a command that reads a bucket says nothing of the SDK that it uses', async () => {
  const env = { ...process.env, AWS_ENDPOINT_URL: 'http://127.0.0.1:9', TEMPER_STORE: `s3://${BUCKET}/none` };
  const { output } = await runTemper(temporaryFolder(), ['runs'], env);
  // The AWS SDK warns on Node 20 in words of its own, which say nothing that a user of Temper could act on.
  expect(output).toMatch(/^temper: the store s3:\S+ at \S+ refused[^\n]*\n$/);
});

test('who looks at a run goes on looking while the store is away', async () => {
  const storeUri = `s3://${BUCKET}/watched`;
  const store = await writeFixtureRun(temporaryFolder(), {
    steps: 2,
    storeUri,
    state: { state: 'running', failure: null },
  });
  const notes: string[] = [];
  const states: (string | undefined)[] = [];
  const viewer: Viewer = {
    stack: () => undefined,
    pending: () => undefined,
    close: () => undefined,
    note: (note) => void notes.push(note),
    progress: ({ state }) => void states.push(state?.state),
  };
  const signal = new AbortController().signal;
  const isAway = expect.stringMatching(/ECONNREFUSED.*retrying/);
  // At the first look, and later.
  await server.kill();
  const showing = showRun(store, 'demo', viewer, { signal, isOver: isFinal });
  await expect.poll(() => notes).toEqual([isAway]);
  expect(states).toEqual([]);
  await server.start();
  await expect.poll(() => states).toContain('running');
  await server.kill();
  await expect.poll(() => notes).toEqual([isAway, isAway]);
  await server.start();
  await store.replace(stateKey('demo'), encodeJson(fixtureState('demo', 2)));
  await showing;
  expect(states.at(-1)).toBe('completed');
  expect(notes).toHaveLength(2);
});
