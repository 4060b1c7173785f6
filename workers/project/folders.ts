/** Folders of a project: state in its `.temper/`, reproducible files in the user's cache folder. */
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { badConfig } from '../../core/contract/failures.ts';
import { isOwn } from './own-file.ts';

export { cacheFolder } from '../../store/cache-folder.ts';

/** A project's configuration, and the folder of its state. */
export const CONFIG_FILE = 'temporal.config.ts';
export const STATE_FOLDER = '.temper';
export const SOCKET_NAME = 'stack.sock';

/** The Python project that ships beside workers/. */
export const GPU_WORKER_FOLDER = fileURLToPath(new URL('../../gpu-worker', import.meta.url));

/** The nearest folder, upwards, that is marked as a project; else the working folder itself. */
export function findProject(cwd: string): string {
  const marks = [STATE_FOLDER, CONFIG_FILE, 'package.json'];
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (marks.some((mark) => existsSync(join(folder, mark)))) return folder;
    if (dirname(folder) === folder) return cwd;
  }
}

export type ProjectFolders = ReturnType<typeof projectFolders>;

export function projectFolders(project: string) {
  const state = join(project, STATE_FOLDER);
  return {
    project,
    state,
    logs: join(state, 'logs'),
    store: join(state, 'store'),
    spool: join(state, 'spool'),
    database: join(state, 'temporal.db'),
    temporalVersion: join(state, 'temporal.version'),
    engineKey: join(state, 'engine.key'),
    uiKey: join(state, 'ui.key'),
    models: join(state, 'models.json'),
    stackFile: join(state, 'stack.json'),
    stackLock: join(state, 'stack.lock'),
    stackSocket: join(state, SOCKET_NAME),
  };
}

/** Makes the state folder, which no version control should take up. */
export function makeProjectFolders(project: string): ProjectFolders {
  const folders = projectFolders(project);
  makeFolder(folders.state);
  closeToOthers(folders.state);
  makeFolder(folders.logs);
  const ignore = join(folders.state, '.gitignore');
  if (!existsSync(ignore)) writeFileSync(ignore, '*\n');
  return folders;
}

/** It contains keys, prompts and answers. */
function closeToOthers(folder: string): void {
  const stats = statSync(folder);
  if (!isOwn(stats)) {
    throw badConfig(
      `${folder} must belong to the user who runs Temper, but user ${stats.uid} owns it; run Temper as that user, or remove the folder`,
    );
  }
  if ((stats.mode & 0o077) !== 0) chmodSync(folder, 0o700);
}

export function makeFolder(folder: string, remedy = 'free space or choose a writable one'): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw badConfig(`cannot make the folder ${folder} (${reason}); ${remedy}`, { cause });
  }
}

/** Form that both languages read; a plain folder is relative to the project. */
export function storeUri(configured: string | null, folders: ProjectFolders): string {
  if (configured === null) return pathToFileURL(folders.store).href;
  return configured.includes('://') ? configured : pathToFileURL(resolve(folders.project, configured)).href;
}
