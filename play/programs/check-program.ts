/** Checks a program before it is played: the file must exist, the list must not be empty. */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

import { badConfig } from '../../core/contract/failures.ts';
import { agentProgram, type Program } from './program.ts';

/** Throws BadConfig where an agent's program cannot be started here. */
export function checkProgram(agent: {
  readonly name: string;
  readonly rollout: unknown;
  readonly folder?: string;
}): void {
  const { name, folder } = agent;
  const program = agentProgram(agent);
  if (program === null) return;
  const at = folder ?? process.cwd();
  const missing = program.files.find((file) => !existsSync(resolve(at, file)));
  if (missing !== undefined)
    throw badConfig(`files of command([…]) must exist, got ${missing}, which is not in ${at}; correct it`);
  if (isProgramFound(program, at)) return;
  const [file = ''] = program.argv;
  const place = isPath(file) ? `is no program in ${at}` : 'is not on PATH';
  throw badConfig(
    `the program of the agent ${name} must be on this machine, but ${file} ${place}; install it, or correct command([…])`,
  );
}

function isProgramFound({ argv: [file = ''], env }: Program, folder: string): boolean {
  if (isPath(file)) return canRun(resolve(folder, file));
  const path = env['PATH'] ?? process.env['PATH'] ?? '';
  return path.split(delimiter).some((each) => each !== '' && canRun(join(each, file)));
}

const isPath = (file: string): boolean => file.includes('/');

function canRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
