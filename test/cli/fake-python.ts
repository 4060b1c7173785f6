/** A Python that has all packages, for commands that run one. */
import { join } from 'node:path';
import { fakePrograms } from '../workers/install/fake-programs.ts';

/**
 * The environment of a command; `program` is JavaScript that stands for the module that the command runs, with what it
 * reads on stdin as `input`.
 */
export function fakePython(program: string): NodeJS.ProcessEnv {
  const programs = fakePrograms();
  const read = "const input = args[1] === 'temper_gpu.process' ? JSON.parse(fs.readFileSync(0, 'utf8')) : null;";
  programs.add('python', `if (args[0] === '-c') console.log('missing:'); else { ${read} ${program} }`);
  return { ...programs.env, TEMPER_PYTHON: join(programs.folder, 'bin', 'python') };
}
