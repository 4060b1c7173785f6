import { resumeUpdate } from '../../workflows/messages.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { steerRun } from '../connections/steer.ts';
import type { resumeCommand } from './command.ts';

export async function resume(context: CommandContext<typeof resumeCommand>): Promise<number> {
  const { run } = context.args;
  const { first } = await steerRun(context, run, (handle) => handle.executeUpdate(resumeUpdate));
  context.output.line(first ? `${run} continues` : `${run} is not paused`);
  return EXIT.ok;
}
