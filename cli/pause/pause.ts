import { pauseUpdate } from '../../workflows/messages.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { steerRun } from '../connections/steer.ts';
import type { pauseCommand } from './command.ts';

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
