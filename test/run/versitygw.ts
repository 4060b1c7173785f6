/** The S3 server of the tests, found or built: a real one, on a folder. */
import { join } from 'node:path';
import { TemperError } from '../../core/contract/failures.ts';
import { runCommand } from '../../workers/process/command.ts';
import { cacheFolder } from '../../workers/project/folders.ts';
import { buildGoProgram, hasGo } from '../../workers/install/go-program.ts';
import { installOnce, isComplete } from '../../workers/install/install.ts';

const VERSION = '1.8.0';
const MODULE = `github.com/versity/versitygw/cmd/versitygw@v${VERSION}`;
const PROGRAM = 'versitygw';
const ANSWERS_WITHIN_MS = 20_000;

/** TEMPER_VERSITYGW, the one on PATH, the one in the cache, or one that is built now. */
export async function findVersitygw(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  if (env.TEMPER_VERSITYGW) return required(env.TEMPER_VERSITYGW, env);
  if (await runs('versitygw', env)) return 'versitygw';
  const folder = join(cacheFolder(env), 'versitygw', VERSION);
  if (!isComplete(folder)) await build(folder, env);
  return join(folder, PROGRAM);
}

async function required(path: string, env: NodeJS.ProcessEnv): Promise<string> {
  if (await runs(path, env)) return path;
  throw new TemperError(
    'BadConfig',
    `TEMPER_VERSITYGW must be versitygw, but ${path} cannot be run; correct or unset it`,
  );
}

async function runs(path: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  return (await runCommand(path, ['--version'], { env, timeoutMs: ANSWERS_WITHIN_MS })).code === 0;
}

async function build(folder: string, env: NodeJS.ProcessEnv): Promise<void> {
  if (!(await hasGo(env))) {
    const rule = 'the tests of the S3 store need versitygw, none is on PATH, and without Go none can be built';
    throw new TemperError('BadConfig', `${rule}; install Go, or point TEMPER_VERSITYGW to one`);
  }
  const make = (partial: string) =>
    buildGoProgram(partial, PROGRAM, { source: MODULE, what: 'building versitygw', env });
  await installOnce(folder, make, { onWait: () => undefined });
}
