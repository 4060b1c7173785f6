/** `temper track`, and the targets that commands name. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

import { readTargets } from '../../cli/session/play-run.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { complaintIn, runCli } from './run-cli.ts';

let project: string;
beforeEach(async () => {
  project = temporaryProject();
});

test('an ended run is told by temper track --to NAME --backfill, without a server, and --json says how far', async () => {
  await writeFixtureRun(project);
  expect((await runCli(project, ['track', 'demo'])).stdout).toMatch(/^no tracker has demo; send it to one with temper/);
  const unknown = await complaintIn(project, ['track', 'demo', '--to', 'csv']);
  expect(unknown).toContain('csv has nothing of it; pass --backfill');
  const told = await runCli(project, ['track', 'demo', '--to', 'csv', '--backfill']);
  expect(told).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^csv has demo up to step \d+/) as string,
  });
  const { stdout } = await runCli(project, ['track', 'demo', '--json']);
  const { trackers } = JSON.parse(stdout) as { trackers: { target: string; step: number; url: string | null }[] };
  expect(trackers).toMatchObject([{ target: 'csv' }]);
  expect(told.stdout).toContain(`step ${trackers[0]!.step}`);
});

test('--track and --trace name targets, those of the project are the default, and none is none', async () => {
  const read = (track: string[], trace: string[]) => readTargets({ track, trace }, { project, env: {} });
  expect(await read([], [])).toEqual([]);
  expect(await read(['csv', 'mlflow'], ['otlp'])).toEqual(['csv', 'mlflow', 'otlp']);
  writeFileSync(
    join(project, 'temporal.config.ts'),
    `export default { track: [{ kind: 'csv', name: 'mine' }], trace: [{ kind: 'langfuse' }] };\n`,
  );
  expect(await read([], [])).toEqual(['mine', 'langfuse']);
  expect(await read(['wandb'], [])).toEqual(['wandb', 'langfuse']);
  expect(await read(['none'], ['none'])).toEqual([]);
  await expect(read(['none', 'csv'], [])).rejects.toThrow('--track none must stand alone, got none, csv');
  await expect(read(['otlp'], [])).rejects.toThrow('a tracker must be one of csv, mlflow, trackio, wandb, mine');
  await expect(read([], ['csv'])).rejects.toThrow('a target for traces must be one of');
});
