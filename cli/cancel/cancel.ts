import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { steerRun } from '../connections/steer.ts';
import type { cancelCommand } from './command.ts';

export async function cancel(context: CommandContext<typeof cancelCommand>): Promise<number> {
  const { run } = context.args;
  await steerRun(context, run, (handle) => handle.cancel());
  context.output.line(`${run} is being cancelled; its committed steps stay in the store`);
  return EXIT.ok;
}
