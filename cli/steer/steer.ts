/** Commands that tell a running workflow one thing. */
import { pauseUpdate, resumeUpdate, stopUpdate } from '../../workflows/messages.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { steerRun } from '../connections/steer.ts';
import type { cancelCommand, pauseCommand, resumeCommand, stopCommand } from './command.ts';

export async function pause(context: CommandContext<typeof pauseCommand>): Promise<number> {
  const { run } = context.args;
  const { reason } = context.flags;
  const { first, afterStep, since } = await steerRun(context, run, (handle) =>
    handle.executeUpdate(pauseUpdate, { args: [{ reason }] }),
  );
  const told = first ? `${run} pauses after step ${afterStep}` : `${run} has been paused since ${since}`;
  context.output.line(`${told}; continue it with temper resume ${run}`);
  return EXIT.ok;
}

export async function resume(context: CommandContext<typeof resumeCommand>): Promise<number> {
  const { run } = context.args;
  const { first } = await steerRun(context, run, (handle) => handle.executeUpdate(resumeUpdate));
  context.output.line(first ? `${run} continues` : `${run} is not paused`);
  return EXIT.ok;
}

export async function stop(context: CommandContext<typeof stopCommand>): Promise<number> {
  const { run } = context.args;
  const { reason } = context.flags;
  const { first, afterStep } = await steerRun(context, run, (handle) =>
    handle.executeUpdate(stopUpdate, { args: [{ reason }] }),
  );
  context.output.line(`${run} ${first ? 'stops' : 'is already stopping'} after step ${afterStep}`);
  return EXIT.ok;
}

export async function cancel(context: CommandContext<typeof cancelCommand>): Promise<number> {
  const { run } = context.args;
  await steerRun(context, run, (handle) => handle.cancel());
  context.output.line(`${run} is being cancelled; its committed steps stay in the store`);
  return EXIT.ok;
}
