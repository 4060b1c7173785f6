/** One attempt by a program: an endpoint of the gateway for it, the program until it ends, and the reward that it tells. */
import { TemperError } from '../../core/contract/failures.ts';
import { gateway, type AttemptEndpoint } from '../transports/gateway.ts';
import { createRequestHandler } from '../transports/gateway-calls.ts';
import {
  describeProgram,
  ProgramError,
  ProgramKilled,
  type Program,
  type ProgramResult,
  type ProgramAttempt,
  type ProgramText,
} from './program.ts';
import { isResult, noResult, parseResult } from './result.ts';
import { playCommand } from './play-command.ts';

/** Resolves or rejects once nothing of the program is left. Rejects with a ProgramError where the attempt failed as data. */
export async function playProgram(attempt: ProgramAttempt): Promise<ProgramResult> {
  const { recorder } = attempt;
  try {
    recorder.ending.check();
    return await play(attempt);
  } catch (error) {
    const failure = error instanceof ProgramKilled ? classifyDeath(error, attempt) : error;
    if (!(failure instanceof ProgramError)) recorder.ending.abort(abortReason(failure, attempt.program));
    throw failure;
  }
}

/** A policy that ends its own program would do so again each time it is played, and its run would never end. */
const SAME_DEATHS = 5;

function classifyDeath(death: ProgramKilled, { recorder, program, countDeath }: ProgramAttempt): Error {
  const calls = recorder.callCount;
  if (countDeath(`${death.signal} ${calls}`) < SAME_DEATHS) return death;
  return new ProgramError(
    `${describeProgram(program)} was ended by ${death.signal} ${SAME_DEATHS} times, each time after ${calls} calls`,
  );
}

async function play(attempt: ProgramAttempt): Promise<ProgramResult> {
  const { program, recorder, log, isGraded } = attempt;
  // The policy may have the key with which its program calls the model.
  const takesResult = !isGraded && program.result === 'any';
  const endpoint = await gateway.open(createRequestHandler({ recorder, log, rewrite: program.rewrite, takesResult }));
  try {
    return readResult(attempt, endpoint, await playCommand(attempt, endpoint));
  } finally {
    endpoint.close();
  }
}

/** A posted result comes after any other, because the key with which it is posted is the one that calls the model. */
function readResult(
  { program, mayLackReward, log }: ProgramAttempt,
  { posted }: AttemptEndpoint,
  output: ProgramText,
): ProgramResult {
  const hasOwn = output.text !== null && isResult(output.text);
  if (posted !== null && !hasOwn) return parseResult(posted, `the result posted by ${describeProgram(program)}`);
  if (posted !== null) log(`the posted result has no effect, because ${output.where} is one`);
  if (output.text !== null) return parseResult(output.text, output.where);
  if (mayLackReward) return {};
  throw noResult(describeProgram(program));
}

/** Failures of this machine are not the agent's. */
function abortReason(error: unknown, program: Program): TemperError {
  if (error instanceof TemperError) return error;
  const message = `${describeProgram(program)} could not be played: ${String(error)}; the attempt is played again`;
  return new TemperError('ProgramFailed', message, { cause: error });
}
