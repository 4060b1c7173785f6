/** One attempt by a program: a door of the gateway for it, the program until it ends, and the reward that it tells. */
import { TemperError } from '../../core/failures.ts';
import { gateway, type Door } from '../transports/gateway.ts';
import { createVisitor } from '../transports/gateway-calls.ts';
import { askEndpoint } from './ask-endpoint.ts';
import { describeProgram, ProgramError, type Program, type ProgramResult } from './program.ts';
import type { ProgramAttempt, ToldResult } from './program-attempt.ts';
import { noResult, parseResult } from './result.ts';
import { playCommand } from './play-command.ts';

/** Resolves or rejects once nothing of the program is left. Rejects with a ProgramError where the attempt failed as data. */
export async function playProgram(attempt: ProgramAttempt): Promise<ProgramResult> {
  const { recorder } = attempt;
  try {
    recorder.ending.check();
    return await play(attempt);
  } catch (error) {
    if (!(error instanceof ProgramError)) recorder.ending.markAs(asMark(error, attempt.program));
    throw error;
  }
}

async function play(attempt: ProgramAttempt): Promise<ProgramResult> {
  const { program, recorder, log } = attempt;
  const door = await gateway.open(createVisitor({ recorder, log, rewrite: program.rewrite }));
  try {
    const told =
      program.kind === 'command'
        ? await playCommand(program, attempt, door)
        : await askEndpoint(program, attempt, door);
    return readResult(attempt, door, told);
  } finally {
    door.close();
  }
}

/** What was posted counts before anything else. */
function readResult({ program, mayLackReward }: ProgramAttempt, { posted }: Door, told: ToldResult): ProgramResult {
  if (posted !== null) return parseResult(posted, `the result posted by ${describeProgram(program)}`);
  if (told.text !== null) return parseResult(told.text, told.where);
  if (mayLackReward) return {} as ProgramResult;
  throw noResult(describeProgram(program));
}

/** What this machine could not do is no fault of the agent. */
function asMark(error: unknown, program: Program): TemperError {
  if (error instanceof TemperError) return error;
  const message = `${describeProgram(program)} could not be played: ${String(error)}; the attempt is played again`;
  return new TemperError('ProgramFailed', message, { cause: error });
}
