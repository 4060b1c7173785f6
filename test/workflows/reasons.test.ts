import { join } from 'node:path';

import { expect, inject, test } from 'vitest';

import { STORE_KEY } from '../../core/contract/wire-constants.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { encodeJson } from '../../store/bytes/json.ts';

import { writeFixtureRun } from '../cli/fixture-store.ts';
import { runCli } from '../cli/run-cli.ts';
import { bed } from './bed.ts';
import { holdTraining, STORE_ID, untilPaused } from './harness.ts';
import { temporaryFolder } from '../temporary-folder.ts';

test('the reasons that a person gives on the command line stand in the run', async () => {
  const project = temporaryFolder();
  // Commands reach runs of their project's store alone.
  await new FileStore(join(project, '.temper', 'store')).publish(STORE_KEY, encodeJson({ id: STORE_ID }));
  const held = holdTraining(1);
  await bed.play({ fake: held, config: { steps: 5 } }, async ({ handle, input }) => {
    const { run } = input.config;
    await writeFixtureRun(project, { run, steps: 1, agent: 'fake' });
    const tell = async (...args: string[]) => {
      const env = { TEMPORAL_ADDRESS: inject('temporalAddress') };
      expect(await runCli(project, args, { env })).toMatchObject({ exitCode: 0, stderr: '' });
    };
    await held.reached;
    await tell('pause', run, '--reason', 'lunch');
    await tell('set', run, 'learningRate=0.5', '--reason', 'it crawls');
    held.release();
    const paused = await untilPaused(handle);
    expect(paused.pause).toMatchObject({ reason: 'lunch' });
    await tell('rollback', run, '--step', '0', '--set', 'learningRate=0.25', '--reason', 'it diverged');
    await tell('stop', run, '--reason', 'enough');
    const { changes, notes } = await handle.result();
    expect(changes.map(({ to, reason }) => [to, reason])).toEqual([
      [0.5, 'it crawls'],
      [0.25, 'it diverged'],
    ]);
    expect(notes.join('\n')).toMatch(/because: lunch[^]*because: it diverged[^]*because: enough/);
  });
});
