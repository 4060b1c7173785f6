import { describeChange } from '../../core/settings.ts';
import { setUpdate } from '../../workflows/messages.ts';
import type { CommandContext } from '../command-line/command.ts';
import { EXIT } from '../command-line/errors.ts';
import { steerRun } from '../connections/steer.ts';
import type { setCommand } from './command.ts';
import { parseSettings } from './settings.ts';

export async function set(context: CommandContext<typeof setCommand>): Promise<number> {
  const { run, settings: texts } = context.args;
  const { reason } = context.flags;
  const { output } = context;
  const settings = parseSettings(texts, { prefix: '', help: 'temper set --help' });
  const { changes } = await steerRun(context, run, (handle) =>
    handle.executeUpdate(setUpdate, { args: [{ settings, reason }] }),
  );
  for (const change of changes) output.line(`${run}: ${describeChange(change)}`);
  if (changes.length === 0) output.line(`${run} has ${texts.join(' ')} already`);
  return EXIT.ok;
}
