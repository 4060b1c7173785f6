import { resolve } from 'node:path';
import { copyRun, type Copied } from '../../store/records/copy/copy-run.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { EXIT } from '../command-line/errors.ts';
import { formatBytes, plural } from '../../core/format.ts';
import { printJson } from '../terminal/output.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import type { CheckpointsContext } from './command.ts';

export async function copyCheckpoints(
  { flags, project, cwd, env, output, signal }: CheckpointsContext,
  run: string,
  action: 'push' | 'pull',
  where: string,
): Promise<number> {
  const own = await openProjectStore(project, env);
  const other = await openStore(where.includes('://') ? where : resolve(cwd, where), { isForeign: action === 'pull' });
  const [from, to] = action === 'push' ? [own, other] : [other, own];
  const onStep = (done: number, of: number) => {
    if (output.isTerminal) output.stream.write(`\r${done} of ${of} steps`);
  };
  // Only local objects are read back: pull repairs damaged ones.
  const isThorough = action === 'pull';
  const copied = await copyRun(from, to, run, {
    isThorough,
    withPruned: flags['with-pruned'],
    signal,
    onStep,
  });
  if (output.isTerminal) output.stream.write('\r');
  if (flags.json) printJson(output, { run, from: from.uri, to: to.uri, ...copied });
  else for (const line of describe(run, to.uri, copied)) output.line(line);
  return EXIT.ok;
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
