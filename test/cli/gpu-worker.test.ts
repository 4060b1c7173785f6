import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fakePrograms, type FakePrograms } from '../workers/install/fake-programs.ts';
import { temporaryFolder } from './fixture-store.ts';
import { complaintIn, runCli, type CliResult } from './run-cli.ts';

let programs: FakePrograms;
beforeEach(() => {
  programs = fakePrograms();
});
afterEach(() => programs.remove());

interface Started {
  args: string[];
  env: NodeJS.ProcessEnv;
}

/** What the Python GPU worker is started with, where it ends with `exitCode`. */
async function start(
  flags: string[],
  env: NodeJS.ProcessEnv,
  exitCode = 0,
  folder: string | null = null,
): Promise<CliResult & { started: Started }> {
  const file = join(programs.folder, 'started.json');
  const write = `fs.writeFileSync(${JSON.stringify(file)}, JSON.stringify({ args, env: process.env }))`;
  programs.add(
    'python',
    `if (args[0] === '-c') console.log('missing:'); else { ${write}; process.exit(${exitCode}); }`,
  );
  const TEMPER_PYTHON = join(programs.folder, 'bin', 'python');
  const project = folder ?? (await temporaryFolder());
  const result = await runCli(project, ['gpu-worker', ...flags], { env: { ...programs.env, TEMPER_PYTHON, ...env } });
  return { ...result, started: JSON.parse(readFileSync(file, 'utf8')) as Started };
}

test.each([undefined, ''])('without a key it does not start, and says how to make one (%j)', async (key) => {
  const env = { ...programs.env, ...(key === undefined ? {} : { TEMPER_ENGINE_KEY: key }) };
  const { exitCode, stderr } = await runCli(await temporaryFolder(), ['gpu-worker'], { env });
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/^temper: the GPU worker needs TEMPER_ENGINE_KEY, .*; export TEMPER_ENGINE_KEY=/);
});

test('the worker finds store, queue, key and Temporal where the project and the environment say', async () => {
  const TEMPORAL = { TEMPORAL_ADDRESS: 'temporal.internal:7233', TEMPORAL_NAMESPACE: 'lab' };
  const env = {
    TEMPER_ENGINE_KEY: 'a key',
    OPENAI_API_KEY: "a provider's",
    TEMPER_STORE: 's3://bucket/runs',
    ...TEMPORAL,
  };
  const flags = [
    '--host',
    '10.0.0.5',
    '--port',
    '8099',
    '--threads',
    '3',
    '--devices',
    '2',
    '--shard-base-model',
    '--device',
    'cpu',
    '--dtype',
    'bfloat16',
    '--allow-host',
    'gpu-1',
    '--allow-host',
    'b',
  ];
  const { exitCode, started } = await start(flags, env);
  expect(exitCode).toBe(0);
  expect(started.env).toMatchObject({ TEMPER_ENGINE_KEY: 'a key', ...TEMPORAL });
  expect(started.env['OPENAI_API_KEY']).toBeUndefined();
  const command = started.args.join(' ');
  expect(command).toMatch(
    /^-m temper_gpu --store s3:\/\/bucket\/runs --models \S+ --queue gpu --threads 3 --device cpu --dtype bfloat16 --devices 2 /,
  );
  expect(command).toMatch(
    / --shard-base-model --host=10\.0\.0\.5 --port=8099 --allow-host=gpu-1 --allow-host=b --leash$/,
  );
});

test("device, numbers and memory are those of the project's configuration", async () => {
  const project = await temporaryFolder();
  const engine = { device: 'cuda:1', dtype: 'bfloat16', kvCacheBytes: 2 ** 33, slots: 256 };
  writeFileSync(join(project, 'temporal.config.ts'), `export default ${JSON.stringify({ engine })};\n`);
  const { started } = await start([], { TEMPER_ENGINE_KEY: 'a key' }, 0, project);
  expect(started.args.join(' ')).toContain(
    ' --device cuda:1 --dtype bfloat16 --kv-cache-bytes 8589934592 --slots 256 ',
  );
});

test('base models are in 4 bits by flag or configuration, but not for vLLM', async () => {
  const key = { TEMPER_ENGINE_KEY: 'a key' };
  const { started } = await start(['--load-in-4bit'], key);
  expect(started.args.join(' ')).toMatch(/ --slots 128 --load-in-4bit --leash$/);
  const project = await temporaryFolder();
  const configure = (engine: object) =>
    writeFileSync(join(project, 'temporal.config.ts'), `export default ${JSON.stringify({ engine })};\n`);
  configure({ loadIn4bit: true });
  expect((await start([], key, 0, project)).started.args.join(' ')).toContain(' --slots 128 --load-in-4bit ');
  const refusal = async (...flags: string[]) => complaintIn(project, ['gpu-worker', ...flags], { env: key });
  expect(await refusal('--devices', '2', '--shard-base-model')).toContain('weights in 4 bits cannot be sharded');
  configure({ kind: 'vllm' });
  expect(await refusal('--load-in-4bit')).toContain(
    '--load-in-4bit (engine.loadIn4bit in temporal.config.ts) must come with the embedded engine, because vLLM',
  );
});

test('one that only samples takes no training, whatever the project says of it', async () => {
  const key = { TEMPER_ENGINE_KEY: 'a key' };
  const project = await temporaryFolder();
  const engine = { devices: 2, shardBaseModel: true, compileLayers: true };
  writeFileSync(join(project, 'temporal.config.ts'), `export default ${JSON.stringify({ engine })};\n`);
  const { started } = await start(['--no-train'], key, 0, project);
  expect(started.args.join(' ')).toMatch(/ --dtype auto --slots 128 --no-temporal --leash$/);
  for (const flags of [['--devices', '2'], ['--shard-base-model']])
    expect(await complaintIn(project, ['gpu-worker', '--no-train', ...flags], { env: key })).toBe(
      `temper: ${flags[0]} has no effect with --no-train (it says how base models are trained); leave one of them out`,
    );
});

test('its key is on no command line', async () => {
  const { started } = await start([], { TEMPER_ENGINE_KEY: 'a key' });
  expect(started.args.join(' ')).not.toContain('a key');
});

test.each([
  [2, 2, ''],
  [70, 1, 'temper: the GPU worker ended (70); see its last lines, then start it again'],
])('where it ends with %i, the command ends with %i', async (code, expected, stderr) => {
  const result = await start([], { TEMPER_ENGINE_KEY: 'a key' }, code);
  expect([result.exitCode, result.stderr]).toEqual([expected, stderr]);
});
