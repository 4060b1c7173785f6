import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { EngineSettings } from '../../../core/contract/engine.ts';
import { defineConfig, loadConfig } from '../../../workers/config/config.ts';
import { runCommand } from '../../../workers/process/command.ts';
import { nodeFlags } from '../../../workers/process/module-path.ts';
import { cacheFolder, projectFolders } from '../../../workers/project/folders.ts';
import { checkJoined, checkPorts } from '../../../workers/local-stack/check-joined.ts';
import { openStack } from '../local-stack/stack-harness.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

/** User that no file of this machine names; root may become one, except in some containers. */
const NAMELESS = 59_999;
const canBeNameless = process.getuid?.() === 0 && spawnSync('true', { uid: NAMELESS }).status === 0;

function projectOf(text: string): string {
  const folder = projectWith();
  writeFileSync(join(folder, 'temporal.config.ts'), text);
  return folder;
}

function projectWith(config?: object): string {
  const folder = temporaryFolder();
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
      /^temporal\.config\.ts: unknown key "stor"; known are store, queues, capacity, engine, models, train, prices, track, trace, metrics, localStack$/,
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

  it.runIf(canBeNameless)('has to name a cache for a user whom the system gives no home', async () => {
    const module = pathToFileURL(join(import.meta.dirname, '../../../store/cache-folder.ts')).href;
    const program = `import { cacheFolder } from '${module}';
process.setuid(${NAMELESS});
delete process.env.HOME;
console.log(cacheFolder({ TEMPER_CACHE: '/mine' }));
try { cacheFolder({}); } catch (error) { console.log(error.type, error.message); }`;
    const args = [...nodeFlags(), '--input-type=module', '--eval', program];
    expect((await runCommand(process.execPath, args)).output.split('\n')).toEqual([
      '/mine',
      'BadConfig TEMPER_CACHE must name a folder for what is downloaded and built, as this user has no home folder; export TEMPER_CACHE=FOLDER',
    ]);
  });

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
    engine: EngineSettings.parse({ dtype: 'bfloat16' }),
  };
  const joins = (asked: object, config: object = {}) =>
    checkJoined(stack, { uiPort: null, enginePort: null, ...asked }, defineConfig(config), folders);

  it('may ask for the ports that it has', () => {
    expect(() => joins({ uiPort: 8001, enginePort: 8002 })).not.toThrow();
    expect(() => joins({})).not.toThrow();
    expect(() => joins({ overrides: { device: 'auto', dtype: 'bfloat16', devices: 1 } })).not.toThrow();
  });

  it.each([
    ['another port of the UI', { uiPort: 9000 }, {}, '--ui-port has no effect here'],
    ['another port of the engine', { enginePort: 9000 }, {}, '--engine-port has no effect here'],
    ['metrics of a stack without', { metricsPort: 9000 }, {}, 'runs already, without metrics'],
    [
      'parts of the base model',
      { overrides: { shardBaseModel: true } },
      {},
      '--shard-base-model has no effect here: the local stack of this project runs already, with a whole base model on',
    ],
    [
      'a base model in 4 bits',
      { overrides: { loadIn4bit: true } },
      {},
      '--load-in-4bit has no effect here: the local stack of this project runs already, with a base model that is not',
    ],
    [
      'another device',
      { overrides: { device: 'cuda' } },
      {},
      '--device has no effect here: the local stack of this project runs already, with --device auto',
    ],
    [
      'another type',
      { overrides: { dtype: 'float32' } },
      {},
      '--dtype has no effect here: the local stack of this project runs already, with --dtype bfloat16',
    ],
    [
      'another number of devices',
      { overrides: { devices: 2 } },
      {},
      '--devices has no effect here: the local stack of this project runs already, with --devices 1',
    ],
    [
      'another engine',
      { overrides: { kind: 'vllm' } },
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
    expect(() => checkPorts({ overrides: { device: 'cuda' } }, true, elsewhere)).toThrow(
      /--device has no effect.*no GPU worker/,
    );
    expect(() => checkPorts({ overrides: { shardBaseModel: true } }, true, elsewhere)).toThrow(
      /--shard-base-model has no effect/,
    );
    expect(() => checkPorts({ overrides: { loadIn4bit: true } }, true, elsewhere)).toThrow(
      /--load-in-4bit has no effect/,
    );
    expect(() => checkPorts({ uiPort: 9000, enginePort: 9001 }, true, defineConfig())).not.toThrow();
  });
});

describe('a field of the engine', () => {
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
