/** Effects of an old or foreign `stack.json`: nothing that this user does not own, and no process but the recorded one. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { defineConfig } from '../../workers/config/config.ts';
import { EngineSettings } from '../../core/contract/engine.ts';
import { tryFileLock } from '../../store/bytes/file-lock.ts';
import { makeProjectFolders, type ProjectFolders } from '../../workers/project/folders.ts';
import { checkAddresses } from '../../workers/local-stack/check-joined.ts';
import { connectDaemon } from '../../workers/local-stack/daemon-connection.ts';
import { removeSocket } from '../../workers/local-stack/daemon/daemon-socket.ts';
import { writeAtomically } from '../../workers/project/own-file.ts';
import { processStartTime } from '../../workers/process/processes.ts';
import { readMessages, sendMessage, type ClientMessage } from '../../workers/local-stack/protocol/protocol.ts';
import { readStackFile, writeStackFile, type StackFile } from '../../workers/local-stack/protocol/stack-file.ts';
import { version } from '../../workers/version.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
let folders: ProjectFolders;
let socketFolder: string;
let stack: StackFile;

beforeEach(() => {
  folders = makeProjectFolders(temporaryFolder());
  socketFolder = temporaryFolder();
  const startTime = processStartTime(process.pid) ?? '';
  stack = {
    schema: 1,
    pid: process.pid,
    startTime,
    socket: join(socketFolder, 'stack.sock'),
    ports: null,
    children: [],
  };
  writeStackFile(folders.stackFile, stack);
});

const DESCRIPTION = {
  pid: 7,
  temporalAddress: '127.0.0.1:17000',
  namespace: 'default',
  uiUrl: null,
  engineUrl: 'http://127.0.0.1:17002',
  storeUri: 'file:///x',
  ownsServer: true,
  engine: EngineSettings.parse({ device: 'cpu' }),
};

/** Whether a command line would speak to the socket that `stack.json` names. */
async function isAdopted(prepare: () => void): Promise<boolean> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(stack.socket, () => resolve()));
  prepare();
  const makeSpec = () => Promise.reject(new Error('a new stack is started'));
  const nothing = () => undefined;
  const holding = connectDaemon({ folders, agents: [], models: {}, check: nothing, makeSpec, onEvent: nothing });
  await holding.catch((error: Error) => expect(error.message).toMatch(/a new stack is started|ended during a request/));
  server.close();
  return connections > 0;
}

describe('the socket that stack.json names', () => {
  it("is adopted where it is this user's, and the recorded process lives", async () => {
    expect(await isAdopted(() => undefined)).toBe(true);
  });

  it('is adopted where .temper is a link to a folder elsewhere', async () => {
    renameSync(folders.state, `${folders.project}.state`);
    symlinkSync(`${folders.project}.state`, folders.state);
    stack = { ...stack, socket: folders.stackSocket };
    expect(await isAdopted(() => writeStackFile(folders.stackFile, stack))).toBe(true);
    rmSync(`${folders.project}.state`, { recursive: true });
  });

  it.each<[string, () => void]>([
    ['the recorded process has ended', () => writeStackFile(folders.stackFile, { ...stack, startTime: 'before' })],
    ['others can write to its folder', () => chmodSync(socketFolder, 0o777)],
    [
      'its folder is a link',
      () => {
        renameSync(socketFolder, `${socketFolder}.real`);
        symlinkSync(`${socketFolder}.real`, socketFolder);
      },
    ],
    [
      'the file is a link',
      () => {
        renameSync(folders.stackFile, `${folders.stackFile}.real`);
        symlinkSync(`${folders.stackFile}.real`, folders.stackFile);
      },
    ],
    ['others can write the file', () => chmodSync(folders.stackFile, 0o666)],
    [
      'it stands at another place',
      () => {
        const socket = join(folders.project, 'stack.sock');
        symlinkSync(stack.socket, socket);
        writeStackFile(folders.stackFile, { ...stack, socket });
      },
    ],
  ])('is not where %s', async (_, prepare) => {
    expect(await isAdopted(prepare)).toBe(false);
    rmSync(`${socketFolder}.real`, { recursive: true, force: true });
  });

  it.runIf(isRoot).each<[string, () => void]>([
    ['its folder', () => chownSync(socketFolder, NOBODY, NOBODY)],
    ['the socket', () => chownSync(stack.socket, NOBODY, NOBODY)],
    ['stack.json', () => chownSync(folders.stackFile, NOBODY, NOBODY)],
  ])('is not where another user owns %s', async (_, prepare) => {
    expect(await isAdopted(prepare)).toBe(false);
  });
});

describe('a stack of another version of Temper', () => {
  it.each([
    [{ version: '0.0.1' }, 'Temper 0.0.1'],
    [{}, 'Temper of an earlier version'],
  ])('(%j) is asked what it is, refused, and let go', async (theirs, called) => {
    const told: string[] = [];
    const server = createServer((socket) => {
      readMessages(socket, (line) => {
        const { type } = line as ClientMessage;
        told.push(type);
        if (type === 'describe') sendMessage(socket, { type: 'described', stack: { ...DESCRIPTION, ...theirs } });
        else socket.end(`${JSON.stringify({ type: 'detached', others: 1, agents: [] })}\n`);
      });
    });
    await new Promise<void>((resolve) => server.listen(stack.socket, () => resolve()));
    const makeSpec = () => Promise.reject(new Error('a new stack is started'));
    const nothing = () => undefined;
    const holding = connectDaemon({ folders, agents: [], models: {}, check: nothing, makeSpec, onEvent: nothing });
    await expect(holding).rejects.toMatchObject({
      type: 'BadConfig',
      message: `the local stack of this project was started by ${called}, this command is Temper ${version()}; end the commands that use that stack (Ctrl-C in temper dev, train or serve), then repeat this one: runs continue where they are`,
    });
    expect(told).toEqual(['describe', 'detach']);
    server.close();
  });
});

describe('cleaning up after a stack', () => {
  it('removes no file that a foreign stack.json names', () => {
    const precious = join(folders.project, 'precious');
    const inFolder = stack.socket;
    for (const file of [precious, inFolder]) {
      writeFileSync(file, 'mine');
      removeSocket(file, folders);
      expect(readFileSync(file, 'utf8')).toBe('mine');
    }
    expect(existsSync(dirname(inFolder))).toBe(true);
  });

  it('removes the folder of a socket that its server took away, if nothing else is in it', () => {
    writeFileSync(join(socketFolder, 'other'), 'mine');
    removeSocket(stack.socket, folders);
    expect(existsSync(join(socketFolder, 'other'))).toBe(true);
    rmSync(join(socketFolder, 'other'));
    removeSocket(stack.socket, folders);
    expect(existsSync(socketFolder)).toBe(false);
  });

  it.each([
    ['a process group', { children: [{ name: 'x', pid: -1, startTime: 'x' }] }],
    ['every process', { children: [{ name: 'x', pid: 0, startTime: 'x' }] }],
    ['a process without a start time', { children: [{ name: 'x', pid: 7, startTime: '' }] }],
    ['a port that is none', { ports: { temporal: '1 --x', ui: 2, engine: 3 } }],
  ])('takes a file that names %s for none', (_, change) => {
    writeAtomically(folders.stackFile, JSON.stringify({ ...stack, ...change }));
    expect(readStackFile(folders.stackFile)).toBe(null);
  });
});

describe('the state folder', () => {
  it('is closed to others, also where an older version left it open', () => {
    const project = temporaryFolder();
    mkdirSync(join(project, '.temper'), { mode: 0o755 });
    const { state } = makeProjectFolders(project);
    expect(statSync(state).mode & 0o777).toBe(0o700);
  });

  it.runIf(isRoot)("must be this user's", () => {
    chownSync(folders.state, NOBODY, NOBODY);
    expect(() => makeProjectFolders(folders.project)).toThrow(
      `${folders.state} must belong to the user who runs Temper, but user ${NOBODY} owns it`,
    );
  });

  it('is written and locked through no link', () => {
    const [target, lock] = [join(folders.project, 'target'), join(folders.state, 'x.lock')];
    writeFileSync(target, 'mine');
    symlinkSync(target, `${folders.models}.${process.pid}.tmp`);
    writeAtomically(folders.models, '{}');
    expect([readFileSync(target, 'utf8'), readFileSync(folders.models, 'utf8')]).toEqual(['mine', '{}']);
    symlinkSync(target, lock);
    expect(() => tryFileLock(lock)).toThrow('ELOOP');
  });
});

describe('the addresses that a joined stack names', () => {
  const elsewhere = { address: 'a.test:7233', namespace: 'default' };

  it('are used where they are this machine, or those that the configuration names', () => {
    const config = defineConfig();
    expect(() => checkAddresses(DESCRIPTION, config, null)).not.toThrow();
    const other = { ...DESCRIPTION, ownsServer: false, temporalAddress: elsewhere.address };
    expect(() => checkAddresses(other, config, elsewhere)).not.toThrow();
  });

  it.each([
    ['an engine', { engineUrl: 'http://evil.test:80' }, null],
    ['an engine that looks like this machine', { engineUrl: 'http://127.0.0.1:80@evil.test' }, null],
    ['a Temporal server', { ownsServer: false, temporalAddress: 'evil.test:7233' }, elsewhere],
  ])('are refused where it names %s elsewhere', (_, change, server) => {
    expect(() => checkAddresses({ ...DESCRIPTION, ...change }, defineConfig(), server)).toThrow(
      /evil\.test.*stop that stack first/,
    );
  });
});
