/** The daemon's socket: open to this user alone, at a path short enough to be one. */
import { chmodSync, mkdtempSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { SOCKET_NAME, type ProjectFolders } from '../../project/folders.ts';
import { isOwnFolder, isOwnSocket } from '../../project/own-file.ts';

/** Longer paths cannot name a socket (104 bytes on macOS, 108 on Linux, with the final zero). */
const MAX_SOCKET_PATH = 103;
const TEMPORARY_PREFIX = 'temper-';

export function chooseSocketPath(folders: ProjectFolders): string {
  if (Buffer.byteLength(folders.stackSocket) <= MAX_SOCKET_PATH) return folders.stackSocket;
  return join(mkdtempSync(join(tmpdir(), TEMPORARY_PREFIX)), SOCKET_NAME);
}

/** Whether only this user can be behind the socket: the path may come from an old file. */
export function isOwnSocketPath(path: string, folders: ProjectFolders): boolean {
  const folder = dirname(path);
  // `.temper` may be a link to a larger disk: where it leads must be this user's.
  const isInState = path === folders.stackSocket && isOwnFolder(folder, statSync);
  return (isInState || (isTemporary(path) && isOwnFolder(folder))) && isOwnSocket(path);
}

function isTemporary(path: string): boolean {
  const folder = dirname(path);
  return (
    dirname(folder) === tmpdir() && basename(folder).startsWith(TEMPORARY_PREFIX) && basename(path) === SOCKET_NAME
  );
}

/** And the temporary folder that was made for it. The socket itself may be gone: a server that closes removes it. */
export function removeSocket(path: string, folders: ProjectFolders): void {
  if (isOwnSocketPath(path, folders)) rmSync(path, { force: true });
  const folder = dirname(path);
  if (isTemporary(path) && isOwnFolder(folder) && readdirSync(folder).length === 0) rmdirSync(folder);
}

export function listenOn(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    rmSync(path, { force: true });
    // Never open to others, not even between its making and a chmod.
    const before = process.umask(0o177);
    server.listen(path, () => {
      chmodSync(path, 0o600);
      resolve();
    });
    process.umask(before);
  });
}
