import { existsSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { defineConfig, loadConfig } from '../../../workers/config/config.ts';
import { cacheFolder, projectFolders } from '../../../workers/project/folders.ts';
import { checkJoined, checkPorts } from '../../../workers/local-stack/check-joined.ts';
import { gpuWorker, typescriptWorker, type ChildContext } from '../../../workers/local-stack/children/children.ts';
import { specifyStack } from '../../../workers/local-stack/specify.ts';
import { describeStack } from '../../../workers/local-stack/daemon/stack.ts';
import { makeProject, openStack, removeProject } from '../local-stack/stack-harness.ts';

const onLinux = process.platform === 'linux';
const clean: (() => unknown)[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const undo of clean.splice(0)) undo();
});

function projectOf(text: string): string {
  const folder = projectWith();
  writeFileSync(join(folder, 'temporal.config.ts'), text);
  return folder;
}

function projectWith(config?: object): string {
  const folder = makeProject();
  clean.push(() => removeProject(folder));
  if (config) writeFileSync(join(folder, 'temporal.config.ts'), `export default ${JSON.stringify(config)};\n`);
  return folder;
}

describe('a temporal.config.ts that is wrong', () => {
  it.each([
    [
      'export default {\n  store: ./x,\n};\n',
      /^.*temporal\.config\.ts cannot be loaded: .*temporal\.config\.ts:2:9: ERROR: Unexpected "\."/s,
    ],
    ["throw new Error('boom');\n", /^.*temporal\.config\.ts cannot be loaded: Error: boom/],
    ["import 'dotenv-of-nobody';\n", /cannot be loaded: .*; install it with npm install dotenv-of-nobody$/s],
    [
      "export default { stor: './x' };",
      /^temporal\.config\.ts: unknown key "stor"; known are store, queues, capacity, engine, models, train, localStack$/,
    ],
    [
      'export default { engine: { knd: 1, kid: 2 } };',
      /^temporal\.config\.ts: unknown keys "knd", "kid" in engine; known are url, keyVariable, /,
    ],
    [
      'export default { store: 7 };',
      /^temporal\.config\.ts: store: expected string, received number; correct it, or remove it$/,
    ],
    [
      'export default { engine: { slots: 0 } };',
      /^temporal\.config\.ts: engine\.slots: Too small: expected number to be >=\d+, got 0; correct it, or remove it$/,
    ],
    [
      'export default null;',
      /^temporal\.config\.ts: expected object, received null; write export default defineConfig\(\{ … \}\)$/,
    ],
  ])('says what and where: %j', async (text, message) => {
    const error: unknown = await loadConfig(projectOf(text), {}).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ type: 'BadConfig', message: expect.stringMatching(message) as string });
  });
});

describe('the environment', () => {
  it('says where store and engine are, over temporal.config.ts', async () => {
    const project = projectWith({ store: 's3://bucket/a', engine: { url: 'http://one:1', keyVariable: 'ONE' } });
    expect(await loadConfig(project, {})).toMatchObject({
      store: 's3://bucket/a',
      engine: { url: 'http://one:1', keyVariable: 'ONE' },
    });
    const env = { TEMPER_STORE: '/elsewhere', TEMPER_ENGINE_URL: 'http://two:2', TEMPER_ENGINE_KEY: 'secret' };
    expect(await loadConfig(project, env)).toMatchObject({
      store: '/elsewhere',
      engine: { url: 'http://two:2', keyVariable: 'TEMPER_ENGINE_KEY' },
    });
  });

  it('says where the cache is', () => {
    expect(cacheFolder({ TEMPER_CACHE: '/mine', XDG_CACHE_HOME: '/other' })).toBe('/mine');
  });

  it.runIf(process.platform === 'linux').each([undefined, ''])(
    'where it names no cache (%j) is the usual one',
    (none) => {
      const cache = join(homedir(), '.cache', 'temper');
      expect(cacheFolder({ TEMPER_CACHE: none, XDG_CACHE_HOME: none })).toBe(cache);
    },
  );

  it('says nothing where it is empty', async () => {
    expect(await loadConfig(projectWith(), { TEMPER_STORE: '', TEMPER_ENGINE_URL: '' })).toEqual(defineConfig());
  });

  it('is refused where it is no URL', async () => {
    const loading = loadConfig(projectWith(), { TEMPER_ENGINE_URL: 'gpu-host' });
    await expect(loading).rejects.toThrow(/TEMPER_ENGINE_URL must be a URL, got "gpu-host"/);
  });
});

describe('a field without effect is refused by name', () => {
  const url = 'http://gpu-host:8000';
  it.each([
    ['engine.threads', { engine: { url, threads: 4 } }],
    ['engine.device', { engine: { url, device: 'cuda' } }],
    ['engine.dtype', { engine: { url, dtype: 'float32' } }],
    ['engine.devices', { engine: { url, devices: 2 } }],
    ['engine.kvCacheBytes', { engine: { url, kvCacheBytes: 2 ** 30 } }],
    ['engine.prefixCacheBytes', { engine: { url, prefixCacheBytes: 0 } }],
    ['engine.slots', { engine: { url, slots: 64 } }],
    ['engine.kind', { engine: { url, kind: 'vllm' } }],
    ['engine.vllm.args', { engine: { url, vllm: { args: ['-O3'] } } }],
    ['engine.vllm.url', { engine: { url, vllm: { url } } }],
    ['localStack.enginePort', { engine: { url }, localStack: { enginePort: 9000 } }],
    ['localStack.standby', { engine: { url }, localStack: { standby: false } }],
  ])('%s with engine.url, and with TEMPER_ENGINE_URL', async (field, config) => {
    await expect(loadConfig(projectWith(config), {})).rejects.toThrow(
      `${field} in temporal.config.ts has no effect with engine.url`,
    );
    const engine = { ...config.engine, url: null };
    const project = projectWith({ ...config, engine });
    const starting = openStack(project, { env: { TEMPER_ENGINE_URL: url } });
    await expect(starting).rejects.toThrow(
      `${field} in temporal.config.ts has no effect with TEMPER_ENGINE_URL (it configures the GPU worker that the local stack starts); remove it, or unset TEMPER_ENGINE_URL`,
    );
    expect(existsSync(join(project, '.temper', 'stack.json'))).toBe(false);
    // The stack's own workers find its engine by that variable.
    await loadConfig(project, { TEMPER_ENGINE_URL: url });
  });

  it('engine.keyVariable without engine.url', async () => {
    const project = projectWith({ engine: { keyVariable: 'MY_KEY' } });
    await expect(loadConfig(project, {})).rejects.toThrow(/engine.keyVariable .*has no effect without engine.url/);
    const engine = { url, keyVariable: 'MY_KEY' };
    expect(await loadConfig(project, { TEMPER_ENGINE_URL: url })).toMatchObject({ engine });
  });
});

describe('a command that joins a local stack', () => {
  const folders = projectFolders('/project');
  const stack = {
    uiUrl: 'http://127.0.0.1:8001',
    engineUrl: 'http://127.0.0.1:8002',
    storeUri: pathToFileURL(folders.store).href,
    device: 'auto',
    dtype: 'bfloat16' as const,
    devices: 1,
    shardBaseModel: false,
    loadIn4bit: false,
    engine: 'embedded',
  };
  const joins = (asked: object, config: object = {}) =>
    checkJoined(stack, { uiPort: null, enginePort: null, ...asked }, defineConfig(config), folders);

  it('may ask for the ports that it has', () => {
    expect(() => joins({ uiPort: 8001, enginePort: 8002 })).not.toThrow();
    expect(() => joins({})).not.toThrow();
    expect(() => joins({ device: 'auto', dtype: 'bfloat16', devices: 1 })).not.toThrow();
  });

  it.each([
    ['another port of the UI', { uiPort: 9000 }, {}, '--ui-port has no effect here'],
    ['another port of the engine', { enginePort: 9000 }, {}, '--engine-port has no effect here'],
    [
      'parts of the base model',
      { shardBaseModel: true },
      {},
      '--shard-base-model has no effect here: the local stack of this project runs already, with a whole base model on',
    ],
    [
      'a base model in 4 bits',
      { loadIn4bit: true },
      {},
      '--load-in-4bit has no effect here: the local stack of this project runs already, with a base model that is not',
    ],
    [
      'another device',
      { device: 'cuda' },
      {},
      '--device has no effect here: the local stack of this project runs already, with --device auto',
    ],
    [
      'another type',
      { dtype: 'float32' },
      {},
      '--dtype has no effect here: the local stack of this project runs already, with --dtype bfloat16',
    ],
    [
      'another number of devices',
      { devices: 2 },
      {},
      '--devices has no effect here: the local stack of this project runs already, with --devices 1',
    ],
    [
      'another engine',
      { engine: 'vllm' },
      {},
      '--engine has no effect here: the local stack of this project runs already, with --engine embedded',
    ],
    ['another store', {}, { store: '/elsewhere' }, 'runs with the store file:///project/.temper/store'],
    ['an engine elsewhere', {}, { engine: { url: 'http://gpu:1' } }, 'runs with the engine http://127.0.0.1:8002'],
  ])('is refused %s', (_, asked, config, complaint) => {
    expect(() => joins(asked, config)).toThrow(complaint);
  });

  it('is refused ports of what no local stack starts', () => {
    const elsewhere = defineConfig({ engine: { url: 'http://gpu:1' } });
    expect(() => checkPorts({ uiPort: 9000 }, false, defineConfig())).toThrow(/--ui-port has no effect/);
    expect(() => checkPorts({ enginePort: 9000 }, true, elsewhere)).toThrow(/--engine-port has no effect/);
    expect(() => checkPorts({ device: 'cuda' }, true, elsewhere)).toThrow(/--device has no effect.*no GPU worker/);
    expect(() => checkPorts({ shardBaseModel: true }, true, elsewhere)).toThrow(/--shard-base-model has no effect/);
    expect(() => checkPorts({ loadIn4bit: true }, true, elsewhere)).toThrow(/--load-in-4bit has no effect/);
    expect(() => checkPorts({ uiPort: 9000, enginePort: 9001 }, true, defineConfig())).not.toThrow();
  });
});

describe('the GPU worker', () => {
  const given = { device: 'cuda:1', dtype: 'bfloat16', kvCacheBytes: 2 ** 33, slots: 64, threads: 4 } as const;

  async function commandLine(config: object, asked: object = {}, vllm: NodeJS.ProcessEnv = {}): Promise<string> {
    return gpuWorker(await contextOf(config, asked, vllm)).command.join(' ');
  }

  async function contextOf(config: object, asked: object = {}, vllm: NodeJS.ProcessEnv = {}): Promise<ChildContext> {
    const folders = projectFolders('/project');
    const env = { TEMPORAL_ADDRESS: 'server:7233', ...vllm };
    const install = { env, cache: '/cache', onEvent: () => undefined };
    const commands = { gpuWorker: ['gpu-worker'], worker: ['worker'] };
    const options = { project: '/project', agentFile: null, models: {}, onEvent: () => undefined, commands, ...asked };
    const spec = await specifyStack({ folders, config: defineConfig(config), install, options });
    const ports = { temporal: 1, ui: 2, engine: 3 };
    return { spec, folders, ports, stack: describeStack(spec, ports, null), engineKey: 'key', ui: null };
  }

  it('is told devices, type and memory of temporal.config.ts, and of flags before it', async () => {
    const line = '--threads 4 --device cuda:1 --dtype bfloat16 --kv-cache-bytes 8589934592 --slots 64';
    expect(await commandLine({ engine: given })).toContain(line);
    const asked = await commandLine({ engine: given }, { device: 'cpu', dtype: 'float32' });
    expect(asked).toContain('--device cpu --dtype float32');
    expect(await commandLine({})).toContain('--threads 2 --device auto --dtype auto');
    expect(await commandLine({ engine: { prefixCacheBytes: 0 } })).toContain('--prefix-cache-bytes 0');
    expect(await commandLine({})).not.toContain('--prefix-cache-bytes');
    const two = { engine: { device: 'cpu', devices: 2 } } as const;
    expect(await commandLine(two)).toContain('--device cpu --dtype auto --devices 2 ');
    expect(await commandLine(two, { devices: 1 })).not.toContain('--devices');
    expect(await commandLine(two)).not.toContain('--shard-base-model');
    const parts = { engine: { ...two.engine, shardBaseModel: true } };
    for (const sharded of [await commandLine(two, { shardBaseModel: true }), await commandLine(parts)])
      expect(sharded).toContain('--slots 128 --shard-base-model');
    expect(await commandLine({})).not.toContain('--load-in-4bit');
    for (const packed of [
      await commandLine({}, { loadIn4bit: true }),
      await commandLine({ engine: { loadIn4bit: true } }),
    ])
      expect(packed).toContain('--slots 128 --load-in-4bit');
  });

  it.runIf(onLinux)('is told of vLLM by temporal.config.ts or --engine, and of its Python', async () => {
    const env = { TEMPER_VLLM_PYTHON: '/vllm/python' };
    const vllm = { args: ['--max-model-len=8192'], devices: [1, 2] };
    const line = '--engine=vllm --vllm-python=/vllm/python';
    const all = `${line} --vllm-args=["--max-model-len=8192"] --vllm-devices=1,2`;
    expect(await commandLine({ engine: { kind: 'vllm', vllm } }, {}, env)).toContain(all);
    expect(await commandLine({}, { engine: 'vllm' }, env)).toContain(line);
    expect(await commandLine({ engine: { kind: 'vllm' } }, { engine: 'embedded' })).not.toContain('vllm');
    await expect(commandLine({ engine: { kind: 'vllm' } })).rejects.toThrow(
      'the engine vllm needs vLLM, which is not installed; run: temper setup vllm',
    );
  });

  const url = 'http://gpu-host:8000';
  const folder = '/mnt/adapters';

  it('is told of a vLLM server that runs already, and needs no Python of vLLM', async () => {
    const elsewhere = (vllm: object) => commandLine({ engine: { kind: 'vllm', vllm } });
    const line = `--engine=vllm --vllm-url=${url} --vllm-adapters=${folder}`;
    expect(await elsewhere({ url, adapters: { folder } })).toContain(`${line} --host`);
    const there = await elsewhere({ url, adapters: { folder, as: '/srv/adapters' } });
    expect(there).toContain(`${line} --vllm-adapters-as=/srv/adapters`);
    expect(there).not.toContain('--vllm-python');
  });

  it('alone has the key of that server in its environment', async () => {
    const context = await contextOf({ engine: { kind: 'vllm', vllm: { url, adapters: { folder } } } });
    vi.stubEnv('TEMPER_VLLM_KEY', 'secret');
    expect(gpuWorker(context).env['TEMPER_VLLM_KEY']).toBe('secret');
    expect(typescriptWorker(context, 'worker', null).env['TEMPER_VLLM_KEY']).toBeUndefined();
  });

  it.each([
    ['args', { args: ['-O3'] }, {}, 'engine.vllm.args in temporal.config.ts has no effect with engine.vllm.url'],
    ['devices', { devices: [1] }, {}, 'engine.vllm.devices in temporal.config.ts has no effect with engine.vllm.url'],
    ['memory', {}, { kvCacheBytes: 2 ** 30 }, 'engine.kvCacheBytes in temporal.config.ts has no effect'],
    ['no folder', { adapters: {} }, {}, 'must come with engine.vllm.adapters.folder'],
    ['a folder alone', { url: null }, {}, 'engine.vllm.adapters.folder in temporal.config.ts has no effect without'],
    ['another engine', {}, { kind: 'embedded' }, 'engine.vllm.url in temporal.config.ts has no effect with the engine'],
    ['a relative folder', { adapters: { folder: 'adapters' } }, {}, 'engine.vllm.adapters.folder: must be an absolute'],
    ['the path of the API', { url: `${url}/v1` }, {}, 'engine.vllm.url: must be a root like http://gpu-host:8000'],
    ['a key', { url: 'http://me:key@gpu-host:8000' }, {}, 'query or fragment, got "http://…@gpu-host:8000"'],
  ])('is given a vLLM server that runs already, but no %s', async (_, vllm, engine, complaint) => {
    const wrong = { kind: 'vllm', ...engine, vllm: { url, adapters: { folder }, ...vllm } };
    await expect(async () => commandLine({ engine: wrong })).rejects.toThrow(complaint);
  });

  it('is given nothing that only another engine uses', async () => {
    await expect(commandLine({ engine: { vllm: { devices: [1] } } })).rejects.toThrow(
      'engine.vllm.devices in temporal.config.ts has no effect with the engine embedded; remove it, or set engine.kind to vllm (or pass --engine vllm)',
    );
    await expect(commandLine({ engine: { kind: 'vllm', prefixCacheBytes: 0 } })).rejects.toThrow(
      'engine.prefixCacheBytes in temporal.config.ts has no effect with the engine vllm; remove it',
    );
  });

  it.each([
    ['device', { device: 'mps' }, 'must be auto, cpu, cuda or cuda:N'],
    ['dtype', { dtype: 'float16' }, '"auto"|"float32"|"bfloat16"'],
    ['kvCacheBytes', { kvCacheBytes: 1000 }, '1048576'],
    ['slots', { slots: 8 }, '16'],
    ['kind', { kind: 'sglang' }, '"embedded"|"vllm"'],
  ])('takes no other %s', (field, engine, rule) => {
    expect(() => defineConfig({ engine } as never)).toThrow(rule);
    expect(() => defineConfig({ engine } as never)).toThrow(field);
  });
});
