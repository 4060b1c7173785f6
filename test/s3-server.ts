/** An S3 server for tests: versitygw on a folder, on a free port; ended by its pid, and begun again on the same bytes. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { leashed } from '../workers/process/command.ts';
import { freePort } from './free-port.ts';
import { findVersitygw } from './run/versitygw.ts';

export const BUCKET = 'temper-test';

const ACCESS = { ROOT_ACCESS_KEY: 'test-access', ROOT_SECRET_KEY: 'test-secret' };
const START_TIMEOUT_MS = 20_000;

export class S3Server {
  /** Variables by which a client finds it. */
  readonly env: Record<string, string>;
  readonly #program: string;
  readonly #root: string;
  readonly #port: number;
  #child: ChildProcess | null = null;

  constructor(program: string, root: string, port: number) {
    this.#program = program;
    this.#root = root;
    this.#port = port;
    this.env = {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: ACCESS.ROOT_ACCESS_KEY,
      AWS_SECRET_ACCESS_KEY: ACCESS.ROOT_SECRET_KEY,
    };
  }

  /** The file with an object's bytes. */
  file(key: string): string {
    return join(this.#root, 'buckets', BUCKET, key);
  }

  /** Forgets a folder of objects, and what the server noted beside them. */
  forget(key: string): void {
    for (const path of [this.file(key), join(this.#root, 'sidecar', BUCKET, key)]) {
      rmSync(path, { recursive: true, force: true });
    }
  }

  /** The server's process; for signals. */
  get process(): ChildProcess {
    if (this.#child === null) throw new Error('the S3 server is not running');
    return this.#child;
  }

  async start(): Promise<void> {
    mkdirSync(this.file(''), { recursive: true });
    mkdirSync(join(this.#root, 'sidecar'), { recursive: true });
    this.#forgetUnwritten();
    // Not every file system that tests run on has extended attributes.
    const flags = ['posix', '--sidecar', join(this.#root, 'sidecar'), join(this.#root, 'buckets')];
    const command = leashed(this.#program, ['--port', `127.0.0.1:${this.#port}`, '--quiet', ...flags]);
    const child = spawn(...command, { env: { ...process.env, ...ACCESS }, stdio: ['ignore', 'ignore', 'inherit'] });
    this.#child = child;
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (!(await this.#answers())) {
      if (child.exitCode !== null || Date.now() > deadline) throw new Error('versitygw did not come up');
      await delay(50);
    }
  }

  /**
   * versitygw notes an object in the sidecar before its bytes are there. Killed in between, it would refuse to make the
   * object (412) and not find it (404) for ever: no server of S3 does that.
   */
  #forgetUnwritten(): void {
    const sidecar = join(this.#root, 'sidecar', BUCKET);
    if (!existsSync(sidecar)) return;
    for (const path of readdirSync(sidecar, { recursive: true, encoding: 'utf8' })) {
      // In `.sgwtmp/` are uploads in parts, which the server keeps itself.
      const key = /^(?!\.sgwtmp\/)(.*)\/meta$/.exec(path)?.[1];
      if (key !== undefined && !existsSync(this.file(key)))
        rmSync(join(sidecar, key), { recursive: true, force: true });
    }
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#root, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    try {
      await fetch(`http://127.0.0.1:${this.#port}/`);
      return true;
    } catch {
      return false;
    }
  }
}

/** Started, with one empty bucket; this process finds it from now on. */
export async function startS3Server(): Promise<S3Server> {
  const server = new S3Server(await findVersitygw(), mkdtempSync(join(tmpdir(), 'temper-s3-')), await freePort());
  await server.start();
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
  Object.assign(process.env, server.env);
  return server;
}
