/** A Python that has all packages, for commands that run one. */
import { join } from 'node:path';
import { fakePrograms } from '../workers/install/fake-programs.ts';

/** The environment of a command; `program` is JavaScript that stands for the module that the command runs. */
export function fakePython(program: string): NodeJS.ProcessEnv {
  const programs = fakePrograms();
  programs.add('python', `if (args[0] === '-c') console.log('missing:'); else { ${program} }`);
  return { ...programs.env, TEMPER_PYTHON: join(programs.folder, 'bin', 'python') };
}
