/** Operations for scripts: `temper-rl/project`. */
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import type { Arguments, ArgumentValues, Flags } from '../operations/flags.ts';
import { OPERATIONS } from '../operations/index.ts';
import type { FlagInput, Operation, Place } from '../operations/operation.ts';
import { openProjectStore } from '../workers/config/project-store.ts';
import { findProject } from '../workers/project/folders.ts';
import { readInput } from './command-line/to-command.ts';

/** Members that may be left out, because their value is null, false or empty then. */
type Optional<All, Missing> = {
  readonly [Name in keyof All as Missing extends All[Name] ? never : Name]: All[Name];
} & { readonly [Name in keyof All as Missing extends All[Name] ? Name : never]?: All[Name] };

type Given<F extends Flags, A extends Arguments> = Optional<ArgumentValues<A>, null> &
  Optional<Optional<Optional<FlagInput<F>, null>, false>, readonly []>;

type Call<One> =
  One extends Operation<infer F, infer A, infer Output> ? (input: Given<F, A>) => Promise<Output> : never;

/** Each operation, by the names of its command: `checkpoints prune` is `checkpointsPrune`. */
export type Project = { readonly [Name in keyof typeof OPERATIONS]: Call<(typeof OPERATIONS)[Name]> };

interface ProjectOptions {
  /** Default: the project that the working folder is in. */
  readonly folder?: string;
}

/** Operations on the runs of a project, with the inputs and the rules of its commands. They return what `--json` prints. */
export function openProject({ folder }: ProjectOptions = {}): Project {
  const cwd = process.cwd();
  const project = folder === undefined ? findProject(cwd) : resolve(folder);
  const { env } = process;
  const { signal } = new AbortController();
  let opened: ReturnType<Place['store']> | null = null;
  const store = () => (opened ??= openProjectStore(project, env));
  const call = (operation: Operation) => async (given: Readonly<Record<string, unknown>>) => {
    const place = { project, env, cwd, signal, gone: signal, requestId: randomUUID(), store };
    return operation.run(readInput(operation, given).input, place);
  };
  const calls = Object.entries<Operation>(OPERATIONS).map(([name, operation]) => [name, call(operation)]);
  return Object.fromEntries(calls) as Project;
}
