/**
 * The daemon: a separate process that holds the project's lock and everything the local stack started. It lives as long
 * as a command line holds its socket; when the last one is gone, for any reason, everything ends. Started with the
 * stack's specification on stdin.
 */
import { createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { TemperError } from '../../../core/contract/failures.ts';
import { tryFileLock } from '../../../store/bytes/file-lock.ts';
import { projectFolders, type ProjectFolders } from '../../project/folders.ts';
import { openChildLog, type ChildLog } from '../../process/child-log.ts';
import type { StackEvent } from '../../events.ts';
import { chooseSocketPath, listenOn, removeSocket } from './daemon-socket.ts';
import { choosePorts } from '../protocol/ports.ts';
import { processStartTime, reapLeftovers } from '../../process/processes.ts';
import {
  EXIT_LOCKED,
  readMessages,
  sendMessage,
  type ClientMessage,
  type DaemonMessage,
  type StackSpec,
} from '../protocol/protocol.ts';
import { createStack, type Stack } from './stack.ts';
import { readStackFile, writeStackFile, type StackPorts } from '../protocol/stack-file.ts';

const LOCK_WAIT_MS = 1000;
const FIRST_CLIENT_MS = 15_000;

/** State of a daemon; `stack` and `ports` are null until they are known. */
interface Held {
  readonly folders: ProjectFolders;
  readonly log: ChildLog;
  readonly socketPath: string;
  /** Connected command lines, with the files of the agents that each of them needs. */
  readonly sockets: Map<Socket, readonly string[]>;
  ports: StackPorts | null;
  stack: Stack | null;
  ending: boolean;
}

async function runDaemon(spec: StackSpec): Promise<void> {
  const folders = projectFolders(spec.project);
  if (!(await takeLock(folders.stackLock))) process.exit(EXIT_LOCKED);
  const before = readStackFile(folders.stackFile);
  const reaped = await reapLeftovers(before?.children ?? []);
  if (before) removeSocket(before.socket, folders);
  const held: Held = {
    folders,
    log: openChildLog(folders.logs, 'stack'),
    socketPath: chooseSocketPath(folders),
    sockets: new Map(),
    ports: before?.ports ?? null,
    stack: null,
    ending: false,
  };
  const prepared = prepare(held, spec);
  // Reported to each client that attaches.
  prepared.catch(() => undefined);
  await serve(held, prepared);
  remember(held);
  if (reaped.length > 0)
    announce(held, { kind: 'notice', message: `ended processes left over from a killed stack: ${reaped.join(', ')}` });
}

async function prepare(held: Held, spec: StackSpec): Promise<Stack> {
  held.ports = await choosePorts(spec.project, spec.ports, held.ports);
  held.stack = await createStack(spec, held.folders, held.ports, (event) => announce(held, event));
  return held.stack;
}

async function serve(held: Held, prepared: Promise<Stack>): Promise<void> {
  const { sockets } = held;
  const server = createServer((socket) => {
    sockets.set(socket, []);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      (sockets.size === 0 ? end() : dismiss()).catch(giveUp);
    });
    readMessages(socket, (line) => {
      const message = line as ClientMessage;
      if (message.type === 'describe') describe(socket, prepared).catch(giveUp);
      else if (message.type === 'attach') {
        sockets.set(
          socket,
          message.agents.map(({ file }) => file),
        );
        attach(socket, message, prepared).catch(giveUp);
      } else if (sockets.size === 1) end().catch(giveUp);
      else {
        // At once: the next one to let go may ask before this socket has closed.
        sockets.delete(socket);
        letGo(socket).catch(giveUp);
      }
    });
  });
  const end = async () => {
    server.close();
    await endStack(held);
  };
  /** Ends the workers of agents without clients; returns the agents that remain. */
  const dismiss = async () => {
    const agents = [...new Set([...sockets.values()].flat())];
    await held.stack?.keepAgents(agents);
    return agents;
  };
  const letGo = async (socket: Socket) => {
    const agents = await dismiss();
    sendMessage(socket, { type: 'detached', others: sockets.size, agents });
    socket.end();
  };
  await listenOn(server, held.socketPath);
  process.on('SIGTERM', () => {
    end().catch(giveUp);
  });
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  setTimeout(() => {
    if (sockets.size === 0) end().catch(giveUp);
  }, FIRST_CLIENT_MS);
}

/** Its children end with it, and whoever holds the stack starts another daemon. */
function giveUp(error: unknown): void {
  console.error(error);
  process.exit(1);
}

async function describe(socket: Socket, prepared: Promise<Stack>): Promise<void> {
  try {
    sendMessage(socket, { type: 'described', stack: (await prepared).description });
  } catch (error) {
    refuse(socket, error);
  }
}

async function attach(
  socket: Socket,
  message: Extract<ClientMessage, { type: 'attach' }>,
  prepared: Promise<Stack>,
): Promise<void> {
  try {
    const stack = await prepared;
    await stack.attach(message);
    sendMessage(socket, { type: 'attached', stack: stack.description });
    sendMessage(socket, { type: 'status', children: stack.statuses() });
  } catch (error) {
    refuse(socket, error);
  }
}

function refuse(socket: Socket, error: unknown): void {
  const failure = error instanceof TemperError ? error.type : null;
  sendMessage(socket, { type: 'refused', failure, message: error instanceof Error ? error.message : String(error) });
  socket.end();
}

async function endStack(held: Held): Promise<void> {
  if (held.ending) return;
  held.ending = true;
  await held.stack?.end();
  remember(held);
  broadcast(held, { type: 'ended' });
  for (const socket of held.sockets.keys()) socket.end();
  removeSocket(held.socketPath, held.folders);
  held.log.close();
  // The lock is held to the very end: it says that something of this stack still runs.
  setTimeout(() => process.exit(0), 50);
}

function announce(held: Held, event: StackEvent): void {
  const level = event.kind === 'died' ? 'warn' : 'info';
  held.log.write(
    JSON.stringify({ level, time: new Date().toISOString(), process: 'stack', msg: event.kind, ...event }),
  );
  broadcast(held, { type: 'event', event });
  if (event.kind !== 'child' || held.stack === null) return;
  remember(held);
  broadcast(held, { type: 'status', children: held.stack.statuses() });
}

function broadcast(held: Held, message: DaemonMessage): void {
  for (const socket of held.sockets.keys()) sendMessage(socket, message);
}

function remember({ folders, socketPath, ports, stack }: Held): void {
  const startTime = processStartTime(process.pid) ?? '';
  const children = stack?.marks() ?? [];
  try {
    writeStackFile(folders.stackFile, { schema: 1, pid: process.pid, startTime, socket: socketPath, ports, children });
  } catch {
    // A full disk must not end what still runs; without the file only cleaning up after a SIGKILL knows less.
  }
}

/** Another process may hold the lock briefly to see whether it is free. */
async function takeLock(file: string): Promise<boolean> {
  for (const until = performance.now() + LOCK_WAIT_MS; performance.now() < until; await sleep(50)) {
    if (tryFileLock(file)) return true;
  }
  return false;
}

await runDaemon(JSON.parse(await text(process.stdin)) as StackSpec);
