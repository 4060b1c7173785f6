/**
 * Mistakes of a person, by the real command line: one line on stderr, exit code 2, no run begun, no process left.
 * Each flag and argument: test/cli/bad-input.test.ts, without a process of its own.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeFixtureRun } from '../cli/fixture-store.ts';
import { aliveIn, linesOf, runTemper } from '../stack.ts';
import { until } from '../until.ts';

const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const TRAIN = ['train', AGENT, '--base-model', 'pocket', '--run', 'fresh', '--steps', '1'];
let project: string;

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'temper-bad-input-'));
  writeFileSync(join(project, 'package.json'), '{}');
});

afterEach(() => rmSync(project, { recursive: true, force: true }));

/** The one line, after it was checked that nothing but this line came of the command. */
async function complaint(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { code, stdout, stderr } = await runTemper(project, args, { ...process.env, ...env });
  expect(code, stdout + stderr).toBe(2);
  expect(linesOf(stderr), stderr).toHaveLength(1);
  expect(stderr).toMatch(/^temper: /);
  expect(existsSync(join(project, '.temper', 'store', 'runs', 'fresh'))).toBe(false);
  await until('nothing runs', () => aliveIn(project).length === 0, 10_000);
  return stderr.trim().replaceAll(project, 'PROJECT');
}

async function listen(): Promise<{ server: Server; port: number }> {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

describe('before anything is started, nothing at all is written', () => {
  test.each([
    ['an unknown flag', ['--grop-size', '8']],
    ['an unknown model folder', ['--base-model', './no-such-model']],
  ])('%s', async (_, flags) => {
    await complaint([...TRAIN, ...flags]);
    expect(readdirSync(project)).toEqual(['package.json']);
  });

  test('a missing agent file', async () => {
    expect(await complaint(['train', 'nope.ts', '--base-model', 'pocket'])).toContain('PROJECT/nope.ts does not exist');
    expect(readdirSync(project)).toEqual(['package.json']);
  });

  test('a run name in use with another configuration says what differs', async () => {
    await writeFixtureRun(project, { run: 'demo', agent: 'tic-tac-toe', steps: 4 });
    const before = readdirSync(project, { recursive: true });
    const text = await complaint(['train', AGENT, '--base-model', 'pocket', '--run', 'demo', '--steps', '5']);
    expect(text).toContain('the run demo exists with another configuration (recorded → requested): --steps: 4 → 5');
    expect(readdirSync(project, { recursive: true })).toEqual(before);
  });
});

test('more devices than there are', async () => {
  const bin = join(project, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'nvidia-smi'), '#!/bin/sh\necho One\necho Another\n', { mode: 0o755 });
  const env = { PATH: bin, CUDA_VISIBLE_DEVICES: '0,1' };
  expect(await complaint([...TRAIN, '--device', 'cuda:1', '--devices', '2'], env)).toMatchInlineSnapshot(
    `"temper: --devices (engine.devices in temporal.config.ts) must be at most 1, the number of GPUs from cuda:1 on of this host, got 2; pass --devices 1"`,
  );
});

describe('examples above the limit of tokens', () => {
  const chat = (content: string) =>
    JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content })) });
  const SFT = ['sft', 'fresh.jsonl', '--base-model', 'pocket', '--max-example-tokens', '30'];
  beforeEach(() => writeFileSync(join(project, 'fresh.jsonl'), [chat('a'), chat('b'.repeat(40))].join('\n')));

  test('are refused by their line', async () => {
    expect(await complaint([...SFT, '--overlong', 'refuse'])).toMatchInlineSnapshot(
      `"temper: line 2 of the examples must have at most 30 tokens, it has 84; shorten it, or set overlong to mask (such examples are left out) or truncate (they are cut)"`,
    );
  });

  test('are counted before a run that leaves them out', async () => {
    // Refused next, so that nothing is started.
    const flags = ['--device', 'cuda', '--devices', '2'];
    const env = { ...process.env, CUDA_VISIBLE_DEVICES: '' };
    const { code, stdout } = await runTemper(project, [...SFT, ...flags], env);
    expect([code, linesOf(stdout)]).toMatchInlineSnapshot(`
      [
        2,
        [
          "2 examples: 2 of 6 tokens are trained, the longest has 6",
          "note: 1 example above the limit of tokens will be left out",
        ],
      ]
    `);
  });
});

describe('a store that is not writable', () => {
  const configure = (store: string) =>
    writeFileSync(join(project, 'temporal.config.ts'), `export default { store: ${JSON.stringify(store)} };\n`);

  test('a file stands where the folder should be', async () => {
    configure('./package.json/store');
    expect(await complaint(TRAIN)).toMatchInlineSnapshot(
      `"temper: the store in PROJECT/package.json/store refused (ENOTDIR): a file stands where a folder should be; choose another store"`,
    );
  });

  test.runIf(process.platform === 'linux')('the file system takes no folders, not even from root', async () => {
    configure('/sys/temper-store');
    expect(await complaint(TRAIN)).toMatch(
      /^temper: the store in \/sys\/temper-store refused \((EPERM|EROFS|EACCES)\): /,
    );
    expect(readdirSync(project).toSorted()).toEqual(['package.json', 'temporal.config.ts']);
  });
});

describe('a port that is taken', () => {
  test.each(['ui', 'engine'])('--%s-port', async (name) => {
    const { server, port } = await listen();
    const text = await complaint(['dev', `--${name}-port`, String(port)]);
    expect(text).toBe(
      `temper: port ${port} (--${name}-port) must be free, but another program listens on it; choose another port or remove the setting`,
    );
    server.close();
  });

  test('a port that is none', async () => {
    expect(await complaint(['dev', '--ui-port', '70000'])).toContain('--ui-port must be a port from 1 to 65535');
  });
});

/** That fifteen seconds are enough stands in test/workers/connection/connection.test.ts: a busy machine starts Node as slowly as it likes. */
describe('TEMPORAL_ADDRESS', () => {
  test('nobody listens there', async () => {
    expect(await complaint(TRAIN, { TEMPORAL_ADDRESS: '127.0.0.1:9' })).toMatchInlineSnapshot(
      `"temper: no Temporal server answers at 127.0.0.1:9 (TEMPORAL_ADDRESS or temporal.toml); start one with temporal server start-dev --port 9, or remove the setting to let Temper start its own server"`,
    );
  });

  test('what listens there says nothing', async () => {
    const { server, port } = await listen();
    const text = await complaint(TRAIN, { TEMPORAL_ADDRESS: `127.0.0.1:${port}` });
    expect(text).toContain(`start one with temporal server start-dev --port ${port}`);
    server.close();
  });
});

describe('Python', () => {
  /** Nothing on PATH but what a test puts there; nothing installed yet. */
  function bareEnv(): NodeJS.ProcessEnv & { PATH: string } {
    const [bin, cache] = [join(project, 'bin'), join(project, 'cache')];
    mkdirSync(bin, { recursive: true });
    // Found at once: a download that fails first would be the complaint.
    const temporal = join(bin, 'temporal');
    writeFileSync(temporal, "#!/bin/sh\necho 'temporal version 1.5.1 (Server 1.30.0, UI 2.42.1)'\n", { mode: 0o755 });
    return { PATH: bin, TEMPER_CACHE: cache, TEMPER_PYTHON: '', TEMPER_TEMPORAL_CLI: temporal };
  }

  test('is missing', async () => {
    expect(await complaint(TRAIN, bareEnv())).toMatchInlineSnapshot(
      `"temper: Python 3.11 to 3.13 is needed, found none on PATH; install Python 3.13 (or set TEMPER_PYTHON to a Python that has everything installed)"`,
    );
    expect(existsSync(join(project, 'cache', 'python'))).toBe(false);
  });

  test('is too old', async () => {
    const env = bareEnv();
    const python = join(env.PATH, 'python3');
    const answer = JSON.stringify({ executable: '/opt/python3', version: '3.9.2', hasVenv: true, usable: true });
    writeFileSync(python, `#!/bin/sh\necho '${answer}'\n`);
    chmodSync(python, 0o755);
    expect(await complaint(TRAIN, env)).toMatchInlineSnapshot(
      `"temper: Python 3.11 to 3.13 is needed, found 3.9.2 (/opt/python3); install Python 3.13 (or set TEMPER_PYTHON to a Python that has everything installed)"`,
    );
    expect(existsSync(join(project, 'cache', 'python'))).toBe(false);
  });

  test('is named by TEMPER_PYTHON and cannot be run', async () => {
    const text = await complaint(TRAIN, { TEMPER_PYTHON: '/no/such/python' });
    expect(text).toContain('TEMPER_PYTHON must be a Python 3.11 to 3.13, but /no/such/python cannot be run');
  });
});
