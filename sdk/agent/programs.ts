/** Rollouts that are programs: `rollout: command(['python3', 'agent.py'])`. */
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import type { RolloutContext, RolloutResult } from '../../play/agent.ts';
import {
  PLAY_PROGRAM,
  PROGRAM,
  type PlayProgram,
  type Program,
  type ResultPlace,
  type Rewrite,
} from '../../play/programs/program.ts';
import { checkCount, checkOptions } from '../options/check-options.ts';

export interface CommandProgramOptions {
  /** Added to what the program finds in its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Files and folders that are part of the agent's code, beside those that the command names. */
  readonly files?: readonly string[];
  /** Changes each request of the program; see `Rewrite`. Put a fixed text where the program writes a date or a path. */
  readonly rewrite?: Rewrite;
  /** How many processes run at once in one worker; by default as many as the machine has processors. */
  readonly concurrency?: number;
  /**
   * `stdout`: its reward is the last line that it prints, and no other. Where the policy has a shell, it could write one
   * to `TEMPER_RESULT_FILE`, or post one with the attempt's key if the program tells none itself. By default `any`.
   */
  readonly result?: ResultPlace;
}

export interface ProgramRollout {
  /** The result that the program told, checked when the attempt ends: it has the form that the agent asks for. */
  <R = RolloutResult>(context: RolloutContext): Promise<R>;
  readonly [PROGRAM]: Program;
}

/**
 * A program that plays an attempt, started for each attempt in the folder of the agent's file. It reaches the model by
 * `OPENAI_BASE_URL` and `OPENAI_API_KEY`, and tells its reward as the last line that it prints.
 */
export function command(argv: readonly string[], options: CommandProgramOptions = {}): ProgramRollout {
  if (!isTexts(argv) || argv.length === 0 || argv[0] === '')
    throw bad(
      'command must be given a list of texts, the program first',
      argv,
      "pass command(['python3', 'agent.py'])",
    );
  const { env = {}, files = [], concurrency, rewrite, result } = checkOptions('command', options);
  checkCount('concurrency of command', concurrency, { least: 1, example: 4 });
  if (!isTexts(files)) throw bad('files of command must be a list of paths', files, "pass ['lib', 'prompt.txt']");
  if (typeof env !== 'object' || env === null || !isTexts(Object.values(env)))
    throw bad('env of command must be texts by name', env, "pass { NAME: 'value' }");
  const program = { argv: [...argv], env: { ...env }, files: [...files], concurrency: concurrency ?? null };
  return playing({ ...program, rewrite: checkRewrite(rewrite), result: checkResult(result) });
}

function checkResult(result: unknown = 'any'): ResultPlace {
  if (result === 'any' || result === 'stdout') return result;
  throw bad("result of command must be 'any' or 'stdout'", result, "pass 'stdout'");
}

function checkRewrite(rewrite: unknown): Rewrite | null {
  if (rewrite === undefined) return null;
  if (typeof rewrite === 'function') return rewrite as Rewrite;
  throw bad('rewrite must be a function', rewrite, 'pass one that returns the request');
}

function playing(program: Program): ProgramRollout {
  const rollout = async <R>(context: RolloutContext): Promise<R> => {
    const { [PLAY_PROGRAM]: play } = context as { [PLAY_PROGRAM]?: PlayProgram };
    if (play === undefined)
      throw bad('a program must be given the context of a rollout', typeof context, 'pass on what rollout got');
    return (await play(program, context.scenario)) as R;
  };
  return Object.assign(rollout, { [PROGRAM]: Object.freeze(program) });
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && !each.includes('\0'));
}

function bad(rule: string, value: unknown, remedy: string): TemperError {
  const shown = (JSON.stringify(value) ?? String(value)).slice(0, 100);
  return badConfig(`${rule}, got ${shown}; ${remedy}`);
}
