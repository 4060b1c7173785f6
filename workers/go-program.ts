/** Programs that are built from their Go module, through Go's own client. */
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from './command.ts';
import { CommandFailed } from './install.ts';

interface GoBuild {
  /** `host/path/cmd/program@v1.2.3` */
  readonly module: string;
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
  const { module, what, env, signal, onLine } = build;
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const { code, output } = await runCommand('go', ['install', '-v', module], {
    env: { ...env, GOBIN: bin },
    ...(signal ? { signal } : {}),
    ...(onLine ? { onLine } : {}),
  });
  if (code !== 0) throw new CommandFailed(what, output);
  copyFileSync(join(bin, program), join(folder, program));
  rmSync(bin, { recursive: true });
}
