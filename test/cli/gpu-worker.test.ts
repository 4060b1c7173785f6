import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { fakePrograms, type FakePrograms } from '../workers/install/fake-programs.ts';
import type { GpuWorkerSettings } from '../../core/contract/engine.ts';
import { complaintIn, runCli, settingsIn, type CliResult } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

let programs: FakePrograms;
beforeEach(() => {
  programs = fakePrograms();
});

interface Started {
  args: string[];
  settings: GpuWorkerSettings;
  env: NodeJS.ProcessEnv;
}

/** The arguments and variables of the Python GPU worker, which ends with `exitCode`. */
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
  const project = folder ?? temporaryFolder();
  const result = await runCli(project, ['gpu-worker', ...flags], { env: { ...programs.env, TEMPER_PYTHON, ...env } });
  const { args, env: given } = JSON.parse(readFileSync(file, 'utf8')) as Started;
  return { ...result, started: { args, settings: settingsIn(args), env: given } };
}

test.each([undefined, ''])('without a key it does not start, and says how to make one (%j)', async (key) => {
  const env = { ...programs.env, ...(key === undefined ? {} : { TEMPER_ENGINE_KEY: key }) };
  const { exitCode, stderr } = await runCli(temporaryFolder(), ['gpu-worker'], { env });
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
  const flags =
    '--host 10.0.0.5 --port 8099 --threads 3 --devices 2 --shard-base-model --device cpu --dtype bfloat16 --allow-host gpu-1 --allow-host b'.split(
      ' ',
    );
  const { exitCode, started } = await start(flags, env);
  expect(exitCode).toBe(0);
  expect(started.env).toMatchObject({ TEMPER_ENGINE_KEY: 'a key', ...TEMPORAL });
  expect(started.env['OPENAI_API_KEY']).toBeUndefined();
  expect(started.args.join(' ')).toMatch(/^-m temper_gpu --settings \{.*\} --leash$/);
  expect(started.settings).toMatchObject({
    store: 's3://bucket/runs',
    models: expect.stringMatching(/gpu-worker-models\.json$/) as string,
    queue: 'gpu',
    engine: { threads: 3, device: 'cpu', dtype: 'bfloat16', devices: 2, shardBaseModel: true },
    host: '10.0.0.5',
    port: 8099,
    allowHost: ['gpu-1', 'b'],
    role: 'train',
    // The environment says.
    temporalAddress: null,
    namespace: null,
  });
});

test("device, numbers and memory are those of the project's configuration", async () => {
  const project = temporaryFolder();
  const engine = { device: 'cuda:1', dtype: 'bfloat16', kvCacheBytes: 2 ** 33, slots: 256 };
  writeFileSync(join(project, 'temporal.config.ts'), `export default ${JSON.stringify({ engine })};\n`);
  const { started } = await start([], { TEMPER_ENGINE_KEY: 'a key' }, 0, project);
  expect(started.settings.engine).toMatchObject(engine);
});

test('base models are in 4 bits by flag or configuration, but not for vLLM', async () => {
  const key = { TEMPER_ENGINE_KEY: 'a key' };
  const { started } = await start(['--load-in-4bit'], key);
  expect(started.settings.engine.loadIn4bit).toBe(true);
  const project = temporaryFolder();
  const configure = (engine: object) =>
    writeFileSync(join(project, 'temporal.config.ts'), `export default ${JSON.stringify({ engine })};\n`);
  configure({ loadIn4bit: true });
  expect((await start([], key, 0, project)).started.settings.engine.loadIn4bit).toBe(true);
  const refusal = async (...flags: string[]) => complaintIn(project, ['gpu-worker', ...flags], { env: key });
  expect(await refusal('--devices', '2', '--shard-base-model')).toContain('weights in 4 bits cannot be sharded');
  configure({ kind: 'vllm' });
  expect(await refusal('--load-in-4bit')).toContain(
    '--load-in-4bit (engine.loadIn4bit in temporal.config.ts) must come with the embedded engine, because vLLM',
  );
});

test('one that only samples takes no training, whatever the project says of it', async () => {
  const key = { TEMPER_ENGINE_KEY: 'a key' };
  const project = temporaryFolder();
  const engine = { devices: 2, shardBaseModel: true };
  writeFileSync(join(project, 'temporal.config.ts'), `export default ${JSON.stringify({ engine })};\n`);
  const { started } = await start(['--no-train'], key, 0, project);
  expect(started.settings).toMatchObject({
    role: 'sample',
    engine: { devices: 1, shardBaseModel: false },
  });
  for (const flags of [['--devices', '2'], ['--shard-base-model']])
    expect(await complaintIn(project, ['gpu-worker', '--no-train', ...flags], { env: key })).toBe(
      `temper: --no-train and ${flags[0]} exclude each other; leave one of them out`,
    );
});

test.each([
  [['--shard-base-model'], '--shard-base-model (engine.shardBaseModel in temporal.config.ts) must come with several'],
  [['--host', '0.0.0.0'], '--host 0.0.0.0 must come with --allow-host'],
  [['--host', '::'], '--host :: must come with --allow-host'],
  [['--host', ''], "--host '' must come with --allow-host"],
  [['--allow-host', 'http://gpu.example'], '--allow-host must be a name or an address without port'],
  [['--allow-host', 'gpu.example:8017'], '--allow-host must be a name or an address without port'],
  [
    ['--allow-host', ''],
    '--allow-host must be a name or an address without port, got ""; pass --allow-host gpu.example',
  ],
  [['--threads', '5000'], '--threads must be a whole number from 1 to 1024'],
])('%j is refused before Python is started', async (flags, complaint) => {
  const env = { TEMPER_ENGINE_KEY: 'a key' };
  expect(await complaintIn(temporaryFolder(), ['gpu-worker', ...flags], { env })).toContain(complaint);
});

test('an address of IPv6 may be a name of the machine', async () => {
  const { started } = await start(['--host', '::', '--allow-host', 'fd00::5'], { TEMPER_ENGINE_KEY: 'a key' });
  expect(started.settings).toMatchObject({ host: '::', allowHost: ['fd00::5'] });
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
