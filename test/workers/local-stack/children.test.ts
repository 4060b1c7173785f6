import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { EngineSettings, GpuWorkerSettings } from '../../../core/contract/engine.ts';
import type { EngineOverrides } from '../../../core/rules/engine-rules.ts';
import { defineConfig } from '../../../workers/config/config.ts';
import { projectFolders } from '../../../workers/project/folders.ts';
import { gpuWorker, typescriptWorker, type ChildContext } from '../../../workers/local-stack/children/children.ts';
import { specifyStack } from '../../../workers/local-stack/specify.ts';
import { describeStack } from '../../../workers/local-stack/daemon/stack.ts';

const onLinux = process.platform === 'linux';
afterEach(() => vi.unstubAllEnvs());

describe('the GPU worker', () => {
  const given = { device: 'cuda:1', dtype: 'bfloat16', kvCacheBytes: 2 ** 33, slots: 64, threads: 4 } as const;

  async function settings(
    config: object,
    overrides: EngineOverrides = {},
    vllm: NodeJS.ProcessEnv = {},
  ): Promise<GpuWorkerSettings> {
    const { command } = gpuWorker(await contextOf(config, overrides, vllm));
    return GpuWorkerSettings.parse(JSON.parse(command[command.indexOf('--settings') + 1]!));
  }

  async function contextOf(
    config: object,
    overrides: EngineOverrides = {},
    vllm: NodeJS.ProcessEnv = {},
  ): Promise<ChildContext> {
    const folders = projectFolders('/project');
    const env = { TEMPORAL_ADDRESS: 'server:7233', ...vllm };
    const install = { env, cache: '/cache', onEvent: () => undefined };
    const commands = { gpuWorker: ['gpu-worker'], worker: ['worker'] };
    const options = { project: '/project', agentFile: null, models: {}, onEvent: () => undefined, commands, overrides };
    const spec = await specifyStack({ folders, config: defineConfig(config), install, options });
    const ports = { temporal: 1, ui: 2, engine: 3 };
    return { spec, folders, ports, stack: describeStack(spec, ports, null), engineKey: 'a secret key', ui: null };
  }

  it('is told devices, type and memory of temporal.config.ts, and of flags before it', async () => {
    expect((await settings({ engine: given })).engine).toMatchObject(given);
    const other = { device: 'cpu', dtype: 'float32' } as const;
    expect((await settings({ engine: given }, other)).engine).toMatchObject({ ...given, ...other });
    expect((await settings({})).engine).toEqual(EngineSettings.parse({}));
    expect((await settings({ engine: { prefixCacheBytes: 0 } })).engine.prefixCacheBytes).toBe(0);
    const two = { engine: { device: 'cpu', devices: 2 } } as const;
    expect((await settings(two)).engine).toMatchObject({ device: 'cpu', devices: 2, shardBaseModel: false });
    expect((await settings(two, { devices: 1 })).engine.devices).toBe(1);
    const parts = { engine: { ...two.engine, shardBaseModel: true } };
    for (const sharded of [await settings(two, { shardBaseModel: true }), await settings(parts)])
      expect(sharded.engine.shardBaseModel).toBe(true);
    for (const packed of [await settings({}, { loadIn4bit: true }), await settings({ engine: { loadIn4bit: true } })])
      expect(packed.engine.loadIn4bit).toBe(true);
  });

  it('is told where it listens, and where models, store and queues are; its key is not among the settings', async () => {
    expect(await settings({ queues: { gpu: 'mine' } })).toMatchObject({
      port: 3,
      host: '127.0.0.1',
      role: 'train',
      temporalAddress: 'server:7233',
      namespace: 'default',
      queue: 'mine',
      models: projectFolders('/project').models,
      store: pathToFileURL(projectFolders('/project').store).href,
    });
    expect(gpuWorker(await contextOf({})).command.join(' ')).not.toContain('a secret key');
  });

  it.runIf(onLinux)('is told of vLLM by temporal.config.ts or --engine, and of its Python', async () => {
    const env = { TEMPER_VLLM_PYTHON: '/vllm/python' };
    const vllm = { args: ['--max-model-len=8192'], devices: [1, 2] };
    expect(await settings({ engine: { kind: 'vllm', vllm } }, {}, env)).toMatchObject({
      vllmPython: '/vllm/python',
      engine: { kind: 'vllm', vllm },
    });
    expect((await settings({}, { kind: 'vllm' }, env)).vllmPython).toBe('/vllm/python');
    expect(await settings({ engine: { kind: 'vllm' } }, { kind: 'embedded' })).toMatchObject({
      vllmPython: null,
      engine: { kind: 'embedded' },
    });
    await expect(settings({ engine: { kind: 'vllm' } })).rejects.toThrow(
      'the engine vllm needs vLLM, which is not installed; run: temper setup vllm',
    );
  });

  const url = 'http://gpu-host:8000';
  const folder = '/mnt/adapters';

  it('is told of a vLLM server that runs already, and needs no Python of vLLM', async () => {
    const vllm = { url, adapters: { folder, as: '/srv/adapters' } };
    const told = await settings({ engine: { kind: 'vllm', vllm } });
    expect([told.engine.vllm, told.vllmPython]).toEqual([{ args: [], devices: [], policies: 2, ...vllm }, null]);
  });

  it('alone has the key of that server in its environment', async () => {
    const context = await contextOf({ engine: { kind: 'vllm', vllm: { url, adapters: { folder } } } });
    vi.stubEnv('TEMPER_VLLM_KEY', 'secret');
    expect(gpuWorker(context).env['TEMPER_VLLM_KEY']).toBe('secret');
    expect(typescriptWorker(context, 'worker', null, 0).env['TEMPER_VLLM_KEY']).toBeUndefined();
  });

  it('leaves the configured port of metrics to the first TypeScript worker, and the ports after it to the others', async () => {
    const context = await contextOf({ engine: { url }, metrics: { port: 9100 } });
    const metricsOf = (place: number) => {
      const { command } = typescriptWorker(context, 'worker', null, place);
      return (JSON.parse(command.at(-1)!) as { metrics: unknown }).metrics;
    };
    expect([metricsOf(0), metricsOf(1)]).toEqual([
      { host: '127.0.0.1', port: 9100 },
      { host: '127.0.0.1', port: 9101 },
    ]);
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
    await expect(async () => settings({ engine: wrong })).rejects.toThrow(complaint);
  });

  it('is given nothing that only another engine uses', async () => {
    await expect(settings({ engine: { vllm: { devices: [1] } } })).rejects.toThrow(
      'engine.vllm.devices in temporal.config.ts has no effect with the engine embedded; remove it, or set engine.kind to vllm (or pass --engine vllm)',
    );
    await expect(settings({ engine: { kind: 'vllm', prefixCacheBytes: 0 } })).rejects.toThrow(
      'engine.prefixCacheBytes in temporal.config.ts has no effect with the engine vllm; remove it',
    );
  });
});
