/** Programs that are built from their Go module, through Go's own client. */
import { accessSync, constants, copyFileSync, cpSync, mkdirSync, rmSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { runCommand } from '../process/command.ts';
import { requireSuccess } from './install.ts';

interface GoBuild {
  /** `host/path/cmd/program@v1.2.3`, or the folder of a module. */
  readonly source: string;
  /** Begins the message where it fails. */
  readonly what: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
  readonly onLine?: (line: string) => void;
}

export async function hasGo(env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await runCommand('go', ['version'], { env })).code === 0;
}

/** Puts the program into the folder, and nothing else. */
export async function buildGoProgram(folder: string, program: string, build: GoBuild): Promise<void> {
  const { source, what, env, signal, onLine } = build;
  const [bin, caches, copy] = [join(folder, 'bin'), join(folder, 'go'), join(folder, 'source')];
  mkdirSync(bin);
  // Go completes go.mod and go.sum: checksums that are there must fit.
  const isFolder = isAbsolute(source);
  if (isFolder) cpSync(source, copy, { recursive: true });
  const args = ['install', '-v', ...(isFolder ? ['-mod=mod', '.'] : [source])];
  // Without C, as released programs are built: with it, one ends if its user is a number that no file names.
  const place = { ...env, ...(await placesToBuild(caches, env)), GOBIN: bin, CGO_ENABLED: '0' };
  const running = runCommand('go', args, { env: place, cwd: isFolder ? copy : folder, signal, onLine });
  await requireSuccess(what, running);
  copyFileSync(join(bin, program), join(folder, program));
  for (const used of [bin, caches, copy]) rmSync(used, { recursive: true, force: true });
}

/**
 * Go keeps modules, their checksums and what it compiled in the user's home. Where there is none that can be written, it
 * gets `caches`.
 */
async function placesToBuild(caches: string, env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const { output } = await runCommand('go', ['env', 'GOPATH', 'GOMODCACHE', 'GOCACHE'], { env });
  const [paths = '', modules = '', builds = ''] = output.split('\n');
  if ([paths.split(delimiter)[0]!, modules, builds].every(isWritable)) return {};
  // Go protects its modules from being written, and so from being removed.
  const flags = `${env['GOFLAGS'] ?? ''} -modcacherw`;
  return { GOPATH: caches, GOMODCACHE: join(caches, 'modules'), GOCACHE: join(caches, 'build'), GOFLAGS: flags };
}

function isWritable(folder: string): boolean {
  try {
    if (!isAbsolute(folder)) return false;
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
