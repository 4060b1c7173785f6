import { stopUpdate } from '../../workflows/messages.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { steerRun } from '../connections/steer.ts';
import type { stopCommand } from './command.ts';

export async function stop(context: CommandContext<typeof stopCommand>): Promise<number> {
  const { run } = context.args;
  const { reason } = context.flags;
  const { first, afterStep } = await steerRun(context, run, (handle) =>
    handle.executeUpdate(stopUpdate, { args: [{ reason }] }),
  );
  context.output.line(`${run} ${first ? 'stops' : 'is already stopping'} after step ${afterStep}`);
  return EXIT.ok;
}
