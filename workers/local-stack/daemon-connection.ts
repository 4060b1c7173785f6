/** One command line's hold on the daemon: found alive and adopted, or started. */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { tryFileLock } from '../../store/bytes/file-lock.ts';
import type { ProjectFolders } from '../project/folders.ts';
import { modulePath, nodeFlags } from '../process/module-path.ts';
import type { ChildStatus, StackEvent } from '../events.ts';
import { checkVersion } from './check-joined.ts';
import { isOwnSocketPath } from './daemon/daemon-socket.ts';
import { isAlive, processStartTime } from '../process/processes.ts';
import {
  EXIT_LOCKED,
  readMessages,
  sendMessage,
  type AgentRequest,
  type ClientMessage,
  type DaemonMessage,
  type StackDescription,
  type StackSpec,
} from './protocol/protocol.ts';
import { readStackFile, type StackFile } from './protocol/stack-file.ts';

export interface DaemonConnection {
  readonly stack: StackDescription;
  readonly adopted: boolean;
  statuses(): readonly ChildStatus[];
  isLost(): boolean;
  /** Called once if the daemon ends unexpectedly. */
  onLost(listener: () => void): void;
  /** Releases the stack; resolves when everything has ended, if no other process holds it. */
  release(): Promise<StackReleased>;
}

/** Parts of the stack that continue after a command line has released it. */
export interface StackReleased {
  /** How many other command lines hold it; 0: it has ended. */
  readonly others: number;
  /** Files of the agents that those have played. */
  readonly agents: readonly string[];
}

export interface HoldOptions {
  readonly folders: ProjectFolders;
  readonly agents: readonly AgentRequest[];
  readonly models: Readonly<Record<string, string>>;
  /** Throws if this command must not use the stack: before anything is started or registered there. */
  check(stack: StackDescription, adopted: boolean): void;
  /** Created only if no stack is running. */
  makeSpec(): Promise<StackSpec>;
  readonly onEvent: (event: StackEvent) => void;
  readonly signal?: AbortSignal | undefined;
}

const OPEN_WITHIN_MS = 60_000;
const ANSWER_WITHIN_MS = 20_000;
const RELEASE_WITHIN_MS = 25_000;
const GONE_WITHIN_MS = 2000;
const POLL_MS = 50;

export async function connectDaemon(options: HoldOptions): Promise<DaemonConnection> {
  const { socket, startedPid } = await openSocket(options);
  return attach(socket, startedPid, options);
}

/** Two starts at once both come here: one daemon gets the lock, both get its socket. */
async function openSocket(options: HoldOptions): Promise<{ socket: Socket; startedPid: number | null }> {
  const { folders, signal } = options;
  const live = await connectTo(folders);
  if (live) return { socket: live, startedPid: null };
  let spec: StackSpec | null = null;
  let started: StartedDaemon | null = null;
  let until = performance.now() + OPEN_WITHIN_MS;
  while (performance.now() < until) {
    signal?.throwIfAborted();
    const socket = await connectTo(folders);
    if (socket) return { socket, startedPid: started?.pid ?? null };
    if (started !== null && !started.isRunning()) started = afterEnd(started);
    if (started === null && isLockFree(folders)) {
      if (spec === null) {
        spec = await options.makeSpec();
        until = performance.now() + OPEN_WITHIN_MS;
      }
      started = startDaemon(folders, spec);
    }
    await sleep(POLL_MS);
  }
  throw heldBySilence(folders);
}

/** It lost the race for the lock, and the winner's socket is to be waited for; or it could not start. */
function afterEnd(daemon: StartedDaemon): null {
  if (daemon.exitCode() === EXIT_LOCKED) return null;
  throw new Error(`the local stack could not start (see ${daemon.logFile}): ${daemon.lastWords()}`);
}

function connectTo(folders: ProjectFolders): Promise<Socket | null> {
  const stack = readStackFile(folders.stackFile);
  if (stack === null || !isOwnDaemon(stack, folders)) return Promise.resolve(null);
  const path = stack.socket;
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(null));
  });
}

/** The file may be from before a kill or a restart of the machine, and another daemon may have its socket's path. */
function isOwnDaemon(stack: StackFile, folders: ProjectFolders): boolean {
  return isOwnSocketPath(stack.socket, folders) && isAlive({ ...stack, name: 'daemon' });
}

/** A held lock without a socket that answers is a stack that starts, ends, or is frozen. */
function isLockFree(folders: ProjectFolders): boolean {
  const release = tryFileLock(folders.stackLock);
  release?.();
  return release !== null;
}

interface StartedDaemon {
  readonly pid: number | null;
  readonly logFile: string;
  isRunning(): boolean;
  exitCode(): number | null;
  lastWords(): string;
}

function startDaemon(folders: ProjectFolders, spec: StackSpec): StartedDaemon {
  const logFile = join(folders.logs, 'leash.log');
  const log = openSync(logFile, 'w', 0o600);
  const child: ChildProcess = spawn(process.execPath, [...nodeFlags(), modulePath('./local-stack/daemon/daemon')], {
    cwd: folders.project,
    // A separate session: Ctrl-C reaches the command line only, which then decides.
    detached: true,
    stdio: ['pipe', log, log],
  });
  closeSync(log);
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(JSON.stringify(spec));
  child.on('error', () => undefined);
  child.unref();
  return {
    pid: child.pid ?? null,
    logFile,
    isRunning: () => child.pid !== undefined && child.exitCode === null && child.signalCode === null,
    exitCode: () => child.exitCode,
    lastWords: () => readFileSync(logFile, 'utf8').trim().split('\n').slice(-8).join('\n'),
  };
}

/** Asks first what the stack is: one that this command must not use stays as it is. */
async function attach(socket: Socket, startedPid: number | null, options: HoldOptions): Promise<DaemonConnection> {
  const talk = startTalk(socket, options);
  const stack = await talk.ask({ type: 'describe' });
  // The daemon started here may have lost the race for the lock.
  const adopted = stack.pid !== startedPid;
  const connection = { ...talk, stack, adopted, release: () => talk.release(stack.pid) };
  try {
    checkVersion(stack);
    options.check(stack, adopted);
  } catch (error) {
    await connection.release();
    throw error;
  }
  await talk.ask({ type: 'attach', agents: options.agents, models: options.models });
  return connection;
}

interface Answer {
  resolve(stack: StackDescription): void;
  reject(error: Error): void;
}

function startTalk(socket: Socket, { folders, onEvent }: HoldOptions) {
  let statuses: readonly ChildStatus[] = [];
  let answer: Answer | null = null;
  let lost: (() => void) | null = null;
  let released = false;
  let left: StackReleased = { others: 0, agents: [] };
  let ended = false;
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.once('close', () => {
    answer?.reject(new DaemonExited('the local stack ended during a request'));
    if (!released) lost?.();
  });
  socket.on('error', () => undefined);
  readMessages(socket, (line) => {
    const message = line as DaemonMessage;
    if (message.type === 'event') onEvent(message.event);
    else if (message.type === 'status') statuses = message.children;
    else if (message.type === 'refused') answer?.reject(refusal(message));
    else if (message.type === 'described' || message.type === 'attached') answer?.resolve(message.stack);
    else {
      released = true;
      ended = message.type === 'ended';
      if (message.type === 'detached') left = { others: message.others, agents: message.agents };
    }
  });
  return {
    async ask(message: ClientMessage): Promise<StackDescription> {
      const silence = setTimeout(() => {
        answer?.reject(heldBySilence(folders));
        socket.destroy();
      }, ANSWER_WITHIN_MS);
      try {
        return await new Promise((resolve, reject) => {
          answer = { resolve, reject };
          if (socket.closed) reject(new DaemonExited('the local stack ended before a request'));
          sendMessage(socket, message);
        });
      } finally {
        clearTimeout(silence);
        answer = null;
      }
    },
    statuses: () => statuses,
    isLost: () => socket.destroyed,
    onLost(listener: () => void) {
      lost = listener;
      if (socket.closed && !released) listener();
    },
    async release(daemonPid: number) {
      released = true;
      sendMessage(socket, { type: 'detach' });
      await Promise.race([closed, sleep(RELEASE_WITHIN_MS, undefined, { ref: false })]);
      socket.destroy();
      // Its last act is to let the lock go.
      if (ended) await untilGone(daemonPid);
      return left;
    },
  };
}

function refusal({ failure, message }: Extract<DaemonMessage, { type: 'refused' }>): Error {
  return failure === null ? new Error(message) : new TemperError(failure, message);
}

async function untilGone(pid: number): Promise<void> {
  for (const until = performance.now() + GONE_WITHIN_MS; processStartTime(pid) !== null && performance.now() < until;)
    await sleep(POLL_MS / 2);
}

/** The daemon went between being found and answering: ask again. */
export class DaemonExited extends Error {
  override readonly name = 'DaemonExited';
}

function heldBySilence(folders: ProjectFolders): TemperError {
  const pid = readStackFile(folders.stackFile)?.pid ?? null;
  const remedy =
    pid === null ? 'end the other command' : `resume it with kill -CONT ${pid}, or end it with kill -9 ${pid}`;
  return badConfig(
    `the local stack of ${folders.project} does not answer: process ${pid ?? '(unknown)'} holds ${folders.stackLock} but does not respond; ${remedy}`,
  );
}
