/** Attackers that must get nothing from a local stack: another user of this machine, and a web page. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { request } from 'node:http';
import { isAlive } from '../processes.ts';

// One for each test file: they run at the same time.
const PREFIX = 'temper-test-';
const NAME = `${PREFIX}${process.pid}`;

export interface OtherUser {
  readonly uid: number;
  /** Runs a script of Node's as this user; what it prints is JSON. */
  run(script: string, ...args: string[]): unknown[];
  remove(): void;
}

/** A real user, for `beforeAll`: a file none of whose tests is run removes none. A text says why there can be none. */
export function addOtherUser(): OtherUser | string {
  if (process.getuid?.() !== 0) return 'only root can make another user';
  removeStale();
  let made = useradd();
  // Two at once: one finds /etc/passwd locked.
  for (let tries = 0; made.status !== 0 && tries < 5; tries += 1) made = useradd();
  if (made.status !== 0) return `useradd failed: ${made.stderr ?? String(made.error)}`;
  const uid = Number(execFileSync('id', ['-u', NAME], { encoding: 'utf8' }));
  const run = (script: string, ...args: string[]) => {
    const flags = ['--input-type=module', '-e', script, ...args];
    const options = { uid, gid: uid, cwd: '/', env: { PATH: process.env['PATH'] }, encoding: 'utf8' } as const;
    return JSON.parse(execFileSync(process.execPath, flags, options));
  };
  const remove = () => void spawnSync('userdel', [NAME]);
  if (spawnSync(process.execPath, ['--version'], { uid, gid: uid, cwd: '/' }).status === 0) return { uid, run, remove };
  remove();
  return `another user cannot run ${process.execPath}`;
}

/** Users of test runs that were killed: their names hold the ids of processes that are no more. */
function removeStale(): void {
  const ours = readFileSync('/etc/passwd', 'utf8').matchAll(new RegExp(`^${PREFIX}(\\d+):`, 'gm'));
  for (const [, pid] of ours) if (!isAlive(Number(pid))) spawnSync('userdel', [`${PREFIX}${pid}`]);
}

const useradd = () => spawnSync('useradd', ['--no-create-home', '--shell', '/bin/sh', NAME], { encoding: 'utf8' });

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Answer {
  readonly status: number | null;
  readonly body: string;
}

/** Any headers, which `fetch` would not allow. Status null: no HTTP. */
export function ask(
  { host, port }: Address,
  path: string,
  headers: Record<string, string>,
  method = 'GET',
  body = '',
): Promise<Answer> {
  return new Promise((resolve) => {
    const sent = request({ host, port, path, method, headers, timeout: 5000 }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('close', () => resolve({ status: response.statusCode ?? null, body: text }));
    });
    sent.on('timeout', () => sent.destroy());
    sent.on('error', (error) => resolve({ status: null, body: String(error) }));
    sent.end(body);
  });
}

/** Every IPv4 address at which a process listens. Linux alone tells. */
export function listeningAt(pid: number): Address[] {
  const links = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  const sockets = new Set(links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]));
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1);
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === '0A' && sockets.has(inode))
    .map(([, local = '']) => {
      const [address = '', port = ''] = local.split(':');
      const bytes = [6, 4, 2, 0].map((at) => Number.parseInt(address.slice(at, at + 2), 16));
      return { host: bytes.join('.'), port: Number.parseInt(port, 16) };
    });
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** Null where this machine has no browser for tests. */
export function findChromium(): string | null {
  const places = [process.env['TEMPER_CHROMIUM'] ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser'];
  return places.find((place) => place !== '' && existsSync(place)) ?? null;
}
