/** Rollouts that are programs: `rollout: command(['python3', 'agent.py'])`. */
import { badConfig, showValue } from '../../core/contract/failures.ts';
import type { RolloutContext, RolloutResult } from '../../play/agent.ts';
import { attemptHooks } from '../../play/attempt-hooks.ts';
import { PROGRAM, type Program, type ResultPlace, type Rewrite } from '../../play/programs/program.ts';
import { areTexts, areTextsByName, callable, must, oneOf, takes, whole } from '../options/options.ts';

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

const checkOptions = takes<CommandProgramOptions>('command', {
  env: must('texts by name', areTextsByName, "pass { NAME: 'value' }").optional(),
  files: must('a list of paths', areTexts, "pass ['lib', 'prompt.txt']").optional(),
  rewrite: callable('pass one that returns the request').optional(),
  concurrency: whole(1, 'pass 4').optional(),
  result: oneOf(['any', 'stdout'], "pass 'stdout'").optional(),
});

export interface ProgramRollout {
  /** The result that the program gave, checked when the attempt ends: it has the form that the agent asks for. */
  <R = RolloutResult>(context: RolloutContext): Promise<R>;
  readonly [PROGRAM]: Program;
}

/**
 * A program that plays an attempt, started for each attempt in the folder of the agent's file. It reaches the model by
 * `OPENAI_BASE_URL` and `OPENAI_API_KEY`, and tells its reward as the last line that it prints.
 */
export function command(argv: readonly string[], options: CommandProgramOptions = {}): ProgramRollout {
  if (!areTexts(argv) || argv.length === 0 || argv[0] === '')
    throw badConfig(
      `command must be given a list of texts, the program first, got ${showValue(argv)}; pass command(['python3', 'agent.py'])`,
    );
  const { env = {}, files = [], concurrency = null, rewrite = null, result = 'any' } = checkOptions(options);
  return playing({ argv: [...argv], env: { ...env }, files: [...files], concurrency, rewrite, result });
}

function playing(program: Program): ProgramRollout {
  const rollout = async <R>(context: RolloutContext): Promise<R> => {
    const play = attemptHooks(context ?? {})?.playProgram ?? null;
    if (play === null)
      throw badConfig(
        `a program must be given the context of a rollout, got ${typeof context}; pass on what rollout got`,
      );
    return (await play(program, context.scenario)) as R;
  };
  return Object.assign(rollout, { [PROGRAM]: Object.freeze(program) });
}
