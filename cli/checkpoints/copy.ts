import { resolve } from 'node:path';
import { copyRun } from '../../store/records/copy/copy-run.ts';
import type { Copied } from '../../store/records/copy/copy-run.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { CommandContext } from '../command-line/command.ts';
import { formatBytes, plural } from '../terminal/format.ts';
import { printJson } from '../terminal/output.ts';
import { openProjectStore } from '../connections/project-store.ts';

export async function copyCheckpoints(context: CommandContext, action: 'push' | 'pull', where: string): Promise<void> {
  const { flags, positionals, project, cwd, env, output, signal } = context;
  const own = await openProjectStore(project, env);
  const other = await openStore(where.includes('://') ? where : resolve(cwd, where), { isForeign: action === 'pull' });
  const [from, to] = action === 'push' ? [own, other] : [other, own];
  const onStep = (done: number, of: number) => {
    if (output.isTerminal) output.stream.write(`\r${done} of ${of} steps`);
  };
  // What is far away is not read back; what is here is, so that pull repairs it.
  const isThorough = action === 'pull';
  const copied = await copyRun(from, to, positionals[0]!, {
    isThorough,
    withPruned: flags['with-pruned'] === true,
    signal,
    onStep,
  });
  if (output.isTerminal) output.stream.write('\r');
  if (flags['json'] === true) printJson(output, { run: positionals[0], from: from.uri, to: to.uri, ...copied });
  else for (const line of describe(positionals[0]!, to.uri, copied)) output.line(line);
}

function describe(
  run: string,
  to: string,
  { steps, copied, copiedBytes, present, repaired, pruned }: Copied,
): string[] {
  return [
    ...repaired.map((key) => `repaired  ${key}`),
    ...(pruned === 0
      ? []
      : [`${plural(pruned, 'pruned checkpoint')} were skipped (--with-pruned copies what the other store has)`]),
    `${run}: ${plural(steps, 'step')} in ${to}; ${plural(copied, 'object')} copied (${formatBytes(copiedBytes)}), ${present} already existed`,
  ];
}
