/** Operations for scripts, on the store of a project, without a server. */
import { join } from 'node:path';
import { expect, expectTypeOf, test } from 'vitest';
import { openProject, type Project } from '../../cli/project.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { temporaryProject } from './fixture-store.ts';

test('a script does what commands do, by the same rules', async () => {
  const folder = temporaryProject();
  await makeRun(await openStore(join(folder, '.temper', 'store')), { steps: 3 });
  const project = openProject({ folder });
  expect((await project.checkpoints({ checkpoint: 'demo' })).map(({ step }) => step)).toEqual([3, 2, 1, 0]);
  expect(await project.productionPromote({ checkpoint: 'demo@2', by: 'ann' })).toMatchObject({
    run: 'demo',
    created: true,
  });
  expect(await project.productionList({ run: 'demo' })).toMatchObject([{ checkpoint: 'demo@2', by: 'ann' }]);
  const removal = await project.checkpointsPrune({ run: 'demo', keepLast: 1, dryRun: true });
  expect(removal.pruned.map(({ step }) => step)).not.toContain(2);
  await expect(project.checkpointsPrune({ run: 'demo', keepLast: 0 })).rejects.toThrow('--keep-last must be a whole');
  await expect(project.checkpointsPrune({ run: 'demo' })).rejects.toThrow('prune needs to know what to keep');
  await expect(project.pause({ run: 'demo' })).rejects.toThrow('no local stack is running');
});

test('inputs are typed by the tables of the commands', () => {
  expectTypeOf<Parameters<Project['rollback']>[0]['step']>().toEqualTypeOf<number>();
  expectTypeOf<Parameters<Project['rollback']>[0]['reason']>().toEqualTypeOf<string | null | undefined>();
  expectTypeOf<Parameters<Project['stop']>[0]['now']>().toEqualTypeOf<boolean | undefined>();
  expectTypeOf<Parameters<Project['set']>[0]['settings']>().toEqualTypeOf<readonly string[]>();
});
