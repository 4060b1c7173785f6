/** One process for one attempt: what it is given, what it prints, and how it ends. */
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { AttemptEndpoint } from '../transports/gateway.ts';
import { programEnvironment } from './environment.ts';
import { isOwnSignal, ProcessTree, type Exit } from './process-tree.ts';
import {
  type ProgramAttempt,
  type ProgramText,
  describeProgram,
  ProgramError,
  ProgramKilled,
  type Program,
} from './program.ts';
import { type ProgramLeash, openFolder } from './program-leash.ts';
import { isResult } from './result.ts';
import { MAX_OUTPUT_BYTES, ProgramOutput } from './program-output.ts';

/** A variable of the environment may have 128 KiB on Linux; the file always has it. */
const MAX_SCENARIO_BYTES = 65_536;
const MAX_RESULT_BYTES = 1024 ** 2;
/** Characters of each stderr line in a message, so that the last line is not cut off. */
const SHOWN_CHARACTERS = 150;
/** Tells a result from any other last line, if a judge may give the reward alone. */
const LOOKS_LIKE_RESULT = /^\s*[{\d-]/;

export async function playCommand(attempt: ProgramAttempt, endpoint: AttemptEndpoint): Promise<ProgramText> {
  const { program } = attempt;
  const { folder, leash } = openFolder();
  const scenario = JSON.stringify(attempt.scenario);
  const files = { scenario: join(folder, 'scenario.json'), result: join(folder, 'result.json') };
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    await writeFile(files.scenario, scenario);
    const env = {
      ...programEnvironment(process.env),
      ...describeAttempt(attempt, endpoint),
      ...(Buffer.byteLength(scenario) <= MAX_SCENARIO_BYTES ? { TEMPER_SCENARIO: scenario } : {}),
      TEMPER_SCENARIO_FILE: files.scenario,
      ...(program.result === 'any' ? { TEMPER_RESULT_FILE: files.result } : {}),
      ...program.env,
    };
    return await run(program, attempt, { env, leash, hide: hideFrom(endpoint), endpoint, resultFile: files.result });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function describeAttempt(
  { model, seed, temperature, resources }: ProgramAttempt,
  { origin, key }: AttemptEndpoint,
): Record<string, string> {
  return {
    OPENAI_BASE_URL: `${origin}/v1`,
    OPENAI_API_KEY: key,
    ANTHROPIC_BASE_URL: origin,
    ANTHROPIC_API_KEY: key,
    ANTHROPIC_AUTH_TOKEN: key,
    TEMPER_MODEL: model,
    TEMPER_SEED: String(seed),
    TEMPER_TEMPERATURE: String(temperature),
    ...(resources === null ? {} : { TEMPER_RESOURCES: JSON.stringify(resources) }),
  };
}

interface RunOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly leash: ProgramLeash;
  readonly hide: (line: string) => string;
  readonly endpoint: AttemptEndpoint;
  readonly resultFile: string;
}

/** stdout's lines are in the log before those of stderr: their order must not depend on time. */
async function run(program: Program, attempt: ProgramAttempt, options: RunOptions): Promise<ProgramText> {
  const { ending } = attempt.recorder;
  const { env, leash, hide, endpoint } = options;
  const tree = start(program, { cwd: attempt.folder, env, leash });
  const output = new ProgramOutput(tree.process, (line) => attempt.log(hide(line)));
  const stop = (): void => void tree.end();
  ending.signal.addEventListener('abort', stop, { once: true });
  if (ending.isOver) stop();
  const exit = await Promise.race([tree.exit, output.overflow])
    .catch((error: unknown) => {
      throw asStartFailure(error, program);
    })
    .finally(() => ending.signal.removeEventListener('abort', stop));
  await tree.end();
  await output.end();
  const failure = ending.isOver
    ? null
    : findProblem(
        program,
        exit,
        output.lastErrors.map((line) => hide(line).slice(0, SHOWN_CHARACTERS)),
      );
  const file = failure === null ? await readResultFile(options.resultFile, program) : null;
  const line = output.close(failure === null && file === null && isLastLineResult(attempt, endpoint, output));
  if (failure !== null) throw failure;
  if (file !== null) return { text: file, where: `the result file of ${describeProgram(program)}` };
  return { text: line === null ? null : hide(line), where: `the last line of stdout of ${describeProgram(program)}` };
}

/** It must be one, unless the program may have none or has posted one: then another last line is part of the log. */
function isLastLineResult(
  { mayLackReward }: ProgramAttempt,
  { posted }: AttemptEndpoint,
  { lastLine }: ProgramOutput,
): boolean {
  if (posted !== null) return isResult(lastLine ?? '');
  return !mayLackReward || LOOKS_LIKE_RESULT.test(lastLine ?? '');
}

function start(program: Program, options: ConstructorParameters<typeof ProcessTree>[1]): ProcessTree {
  try {
    return new ProcessTree(program.argv, options);
  } catch (error) {
    throw asStartFailure(error, program);
  }
}

/** Null where it ended well: an error that is data, or a mark. */
function findProblem(program: Program, exit: Exit | 'overflow', errors: readonly string[]): Error | null {
  const name = describeProgram(program);
  if (exit === 'overflow')
    return new ProgramError(
      `${name} may print ${MAX_OUTPUT_BYTES} bytes, it printed more; write large output to a file`,
    );
  const { code, signal } = exit;
  if (signal !== null && !isOwnSignal(signal)) return new ProgramKilled(program, signal);
  if (code === 0) return null;
  const how = signal === null ? `exit code ${code}` : signal;
  const last = errors.length === 0 ? 'it wrote nothing to stderr' : `last lines of stderr:\n${errors.join('\n')}`;
  return new ProgramError(`${name} ended with ${how}; ${last}`);
}

/** A missing program is missing for every attempt; a lack of resources may pass. */
function asStartFailure(error: unknown, program: Program): TemperError {
  const { code } = error as NodeJS.ErrnoException;
  const name = describeProgram(program);
  if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR' || code === 'E2BIG' || code === 'EINVAL')
    return badConfig(`${name} cannot be started (${code}); install ${program.argv[0]}, or correct command([…])`);
  return new TemperError(
    'ProgramFailed',
    `${name} could not be started (${String(error)}); the attempt is played again`,
  );
}

async function readResultFile(file: string, program: Program): Promise<string | null> {
  if (program.result === 'stdout') return null;
  const size = await stat(file).then(
    (found) => (found.isFile() ? found.size : 0),
    () => 0,
  );
  if (size === 0) return null;
  if (size <= MAX_RESULT_BYTES) return readFile(file, 'utf8');
  throw new ProgramError(
    `the result file of ${describeProgram(program)} may have ${MAX_RESULT_BYTES} bytes, it has ${size}`,
  );
}

/** Logs are kept for ever, and compared byte by byte: no key, no port of the day. */
function hideFrom({ key, origin }: AttemptEndpoint): (line: string) => string {
  return (line) => line.replaceAll(key, '<key>').replaceAll(origin, 'http://gateway');
}
