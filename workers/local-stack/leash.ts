/**
 * The leash: a process of its own that holds the project's lock and everything the local stack started. It lives as long
 * as a command line holds its socket; when the last one is gone, whatever ended it, everything ends. Started with the
 * stack's specification on stdin.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { TemperError } from '../../core/failures.ts';
import { tryFileLock } from '../file-lock.ts';
import { projectFolders } from '../folders.ts';
import type { ProjectFolders } from '../folders.ts';
import { openChildLog } from './child-log.ts';
import type { StackEvent } from './events.ts';
import { choosePorts } from './ports.ts';
import { processStartTime, reapLeftovers } from './processes.ts';
import { readMessages, sendMessage } from './protocol.ts';
import type { ClientMessage, LeashMessage, StackSpec } from './protocol.ts';
import { createStack } from './stack.ts';
import type { Stack } from './stack.ts';
import { readStackFile, writeStackFile } from './stack-file.ts';
import type { StackFile } from './stack-file.ts';

/** Exit code that says: another leash holds this project. */
export const EXIT_LOCKED = 3;

const LOCK_WAIT_MS = 1000;
const FIRST_CLIENT_MS = 15_000;
/** Longer paths cannot name a socket (104 bytes on macOS, 108 on Linux, with the final zero). */
const MAX_SOCKET_PATH = 103;
const TEMPORARY_PREFIX = 'temper-';

async function holdLeash(spec: StackSpec): Promise<void> {
  const folders = projectFolders(spec.project);
  if (!(await takeLock(folders.stackLock))) process.exit(EXIT_LOCKED);
  const log = openChildLog(folders.logs, 'stack');
  const before = readStackFile(folders.stackFile);
  const reaped = await reapLeftovers(before?.children ?? []);
  if (before) removeSocket(before.socket);

  const sockets = new Set<Socket>();
  const tell = (message: LeashMessage) => {
    for (const socket of sockets) sendMessage(socket, message);
  };
  const socketPath = chooseSocketPath(folders);
  const own = { schema: 1, pid: process.pid, startTime: processStartTime(process.pid) ?? '', socket: socketPath } as const;
  const remember = (rest: Pick<StackFile, 'ports' | 'children'>) => writeStackFile(folders.stackFile, { ...own, ...rest });
  const onEvent = (event: StackEvent) => {
    log.write(JSON.stringify({ level: 'info', time: new Date().toISOString(), process: 'stack', msg: event.kind, ...event }));
    tell({ type: 'event', event });
    // Ports are known as soon as there is a child to speak of.
    if (event.kind === 'child' && stack) {
      remember({ ports: ports, children: stack.marks() });
      tell({ type: 'status', children: stack.statuses() });
    }
  };

  let stack: Stack | null = null;
  let ports: StackFile['ports'] = before?.ports ?? null;
  let ending = false;
  const prepared = (async () => {
    ports = await choosePorts(spec.project, spec.ports, before?.ports ?? null);
    stack = createStack(spec, folders, ports, onEvent);
    remember({ ports, children: [] });
    if (reaped.length > 0) onEvent({ kind: 'notice', message: `ended what a killed stack had left: ${reaped.join(', ')}` });
    return stack;
  })();
  prepared.catch(() => undefined);

  const end = async (server: Server) => {
    if (ending) return;
    ending = true;
    server.close();
    await stack?.end();
    remember({ ports, children: [] });
    tell({ type: 'ended' });
    for (const socket of sockets) socket.end();
    removeSocket(socketPath);
    log.close();
    // Held to the end: the lock is what says that nothing of this stack runs.
    setTimeout(() => process.exit(0), 50);
  };

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) void end(server);
    });
    readMessages<ClientMessage>(socket, (message) => {
      if (message.type === 'attach') void attach(socket, message, prepared);
      else if (sockets.size > 1) {
        sendMessage(socket, { type: 'detached', others: sockets.size - 1 });
        socket.end();
      } else void end(server);
    });
  });
  await listen(server, socketPath);
  remember({ ports, children: [] });
  process.on('SIGTERM', () => void end(server));
  process.on('SIGINT', () => undefined);
  process.on('SIGHUP', () => undefined);
  setTimeout(() => {
    if (sockets.size === 0) void end(server);
  }, FIRST_CLIENT_MS);
}

async function attach(socket: Socket, message: Extract<ClientMessage, { type: 'attach' }>, prepared: Promise<Stack>): Promise<void> {
  try {
    const stack = await prepared;
    await stack.attach(message);
    sendMessage(socket, { type: 'attached', stack: stack.description });
    sendMessage(socket, { type: 'status', children: stack.statuses() });
  } catch (error) {
    const failure = error instanceof TemperError ? error.type : 'TrainerFailed';
    sendMessage(socket, { type: 'refused', failure, message: error instanceof Error ? error.message : String(error) });
    socket.end();
  }
}

/** Somebody may hold the lock for a moment only to see whether it is free. */
async function takeLock(file: string): Promise<boolean> {
  for (const until = Date.now() + LOCK_WAIT_MS; Date.now() < until; await sleep(50)) {
    if (tryFileLock(file)) return true;
  }
  return false;
}

function chooseSocketPath(folders: ProjectFolders): string {
  if (process.platform === 'win32') return `\\\\.\\pipe\\temper-${process.pid}-${Date.now().toString(36)}`;
  if (Buffer.byteLength(folders.stackSocket) <= MAX_SOCKET_PATH) return folders.stackSocket;
  return join(mkdtempSync(join(tmpdir(), TEMPORARY_PREFIX)), 'stack.sock');
}

function removeSocket(path: string): void {
  if (process.platform === 'win32') return;
  rmSync(path, { force: true });
  const folder = dirname(path);
  if (dirname(folder) === tmpdir() && basename(folder).startsWith(TEMPORARY_PREFIX)) rmSync(folder, { recursive: true, force: true });
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    if (process.platform !== 'win32') rmSync(path, { force: true });
    // The socket must never be open to others, not even between its making and a chmod.
    const before = process.umask(0o177);
    server.once('error', reject);
    server.listen(path, () => {
      if (process.platform !== 'win32') chmodSync(path, 0o600);
      resolve();
    });
    process.umask(before);
  });
}

await holdLeash(JSON.parse(await text(process.stdin)) as StackSpec);
