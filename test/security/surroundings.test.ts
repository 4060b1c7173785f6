/** Effects of the environment on the local stack: keys stay where they are needed, and a proxy is for other hosts. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { takeDoorKeys } from '../../core/names/door-keys.ts';
import { connectClient } from '../../workers/connection/connection.ts';
import { programEnvironment, withoutLoopbackProxy } from '../../play/programs/environment.ts';
import { typescriptWorker, type ChildContext } from '../../workers/local-stack/children/children.ts';
import { gpuWorkerEnvironment, serverEnvironment } from '../../workers/process/child-environment.ts';
import { runCommand } from '../../workers/process/command.ts';
import { modulePath, nodeFlags } from '../../workers/process/module-path.ts';

const SYSTEM = { PATH: '/bin', HOME: '/home/a', LC_ALL: 'C', http_proxy: 'http://proxy', NO_PROXY: 'a' };
const PROVIDERS = {
  OPENAI_API_KEY: 'k',
  ANTHROPIC_API_KEY: 'k',
  GEMINI_API_KEY: 'k',
  GITHUB_TOKEN: 'k',
  MY_SECRET: 'k',
};
const GPU = {
  CUDA_VISIBLE_DEVICES: '0',
  HF_TOKEN: 't',
  AWS_ACCESS_KEY_ID: 'a',
  OMP_NUM_THREADS: '1',
  TEMPER_CACHE: '/c',
};

const servers: Server[] = [];

afterEach(() => {
  vi.unstubAllEnvs();
  for (const server of servers.splice(0)) server.close();
});

describe('the environment of a child', () => {
  it("of Temporal's server is the system's alone", () => {
    const named = { ...SYSTEM, USER: 'a', GOMAXPROCS: '2' };
    expect(serverEnvironment({ ...named, ...PROVIDERS, ...GPU }, '/state')).toEqual(named);
  });

  it("of Temporal's server has a name and a home, also for a user that is a number alone", () => {
    expect(serverEnvironment({ PATH: '/bin' }, '/state')).toEqual({ PATH: '/bin', USER: 'temper', HOME: '/state' });
  });

  it('of the GPU worker has what loads models and reaches the store, and no key of a hosted model', () => {
    expect(gpuWorkerEnvironment({ ...SYSTEM, ...PROVIDERS, ...GPU })).toEqual({ ...SYSTEM, ...GPU });
  });

  it.each(['TEMPER_REVIEW_KEY', 'TEMPER_FEEDBACK_KEY', 'TEMPER_UI_KEY', 'TEMPER_SERVE_KEY'])(
    'of what plays or serves a policy, and of a program that Temper calls, has no %s',
    async (key) => {
      vi.stubEnv(key, 'k');
      const context = { spec: { workerCommand: [] }, folders: {}, stack: {} } as unknown as ChildContext;
      const worker = typescriptWorker(context, 'worker', null, 0).env;
      const envs = [worker, gpuWorkerEnvironment(process.env), programEnvironment(process.env)];
      expect(envs.map((env) => env[key])).toEqual([undefined, undefined, undefined]);
      expect((await runCommand('env', [])).output).not.toContain(key);
      expect([takeDoorKeys(process.env)[key], process.env[key]]).toEqual(['k', undefined]);
    },
  );

  it('of an agent’s program has what finds its language, and neither key nor setting of Temper’s', () => {
    const own = { VIRTUAL_ENV: '/v', PYTHONPATH: '/p' };
    const hidden = { TEMPER_ENGINE_KEY: 'k', TEMPER_STORE: 's3://a', TEMPORAL_API_KEY: 'k', NODE_OPTIONS: '-r x' };
    const system = { ...SYSTEM, no_proxy: 'a,127.0.0.1,localhost,::1', NO_PROXY: 'a,127.0.0.1,localhost,::1' };
    expect(programEnvironment({ ...SYSTEM, ...PROVIDERS, ...GPU, ...own, ...hidden })).toEqual({ ...system, ...own });
  });

  it('of an agent’s program has no password of a proxy', () => {
    const proxies = {
      HTTPS_PROXY: 'http://me:p@ss@proxy:1',
      all_proxy: 'me:secret@proxy:2',
      http_proxy: 'socks5://p:3',
    };
    const open = { HTTPS_PROXY: 'http://proxy:1', all_proxy: 'proxy:2', http_proxy: 'socks5://p:3' };
    expect(programEnvironment(proxies)).toMatchObject(open);
  });

  it.each([
    [{ http_proxy: 'http://p' }, '127.0.0.1,localhost,::1'],
    [{ ALL_PROXY: 'http://p', no_proxy: 'a.test, localhost' }, 'a.test,localhost,127.0.0.1,::1'],
    [{ HTTPS_PROXY: 'http://p', NO_PROXY: 'b.test' }, 'b.test,127.0.0.1,localhost,::1'],
  ])('reaches this machine without the proxy of %o', (env, hosts) => {
    expect(withoutLoopbackProxy(env)).toEqual({ ...env, no_proxy: hosts, NO_PROXY: hosts });
  });

  it('is left as it is where there is no proxy', () => {
    expect(withoutLoopbackProxy({ HOME: '/' })).toEqual({ HOME: '/' });
  });
});

describe('a connection to a server on this machine', () => {
  it('does not go through the proxy that http_proxy names', async () => {
    const first = await new Promise<string>((resolve, reject) => {
      const listen = async (name: string) => {
        const server = createServer((socket) => {
          socket.on('error', () => undefined).destroy();
          resolve(name);
        });
        servers.push(server);
        await once(server.listen(0, '127.0.0.1'), 'listening');
        return (server.address() as AddressInfo).port;
      };
      const connect = async () => {
        vi.stubEnv('http_proxy', `http://127.0.0.1:${await listen('proxy')}`);
        await connectClient({ address: `127.0.0.1:${await listen('server')}`, namespace: 'default' });
      };
      connect().catch(reject);
    });
    expect(first).toBe('server');
  });
});

const NO_IPV4 = `
  const { choosePorts } = await import(process.argv[1]);
  await choosePorts('/x', { temporal: null, ui: null, engine: null }, null).catch((error) => console.log(error.message));`;

describe.skipIf(process.platform !== 'linux')('a machine whose loopback interface has no IPv4 address', () => {
  it('is told so, and not that every port is taken', (context) => {
    const probe = spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up'], { encoding: 'utf8' });
    if (probe.status !== 0) {
      context.skip(`no network of its own could be made: ${probe.stderr}`);
      return;
    }
    const script = [...nodeFlags(), '--input-type=module', '-e', NO_IPV4, modulePath('local-stack/protocol/ports')];
    const shell = ['sh', '-c', 'ip link set lo up && ip -4 addr flush dev lo && exec "$@"', 'sh'];
    const { stdout, stderr } = spawnSync('unshare', ['--net', ...shell, process.execPath, ...script], {
      encoding: 'utf8',
    });
    expect(stdout, stderr).toMatch(
      /^the local stack listens on 127\.0\.0\.1, but this machine does not have that address/,
    );
  });
});
