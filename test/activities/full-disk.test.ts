/** A disk that refuses at each write in turn, and then takes everything again: the group's bytes are the undisturbed ones. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import type { RolloutInput } from '../../core/contract/contract.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { evalRolloutsKey, judgedKey, rolloutsKey } from '../../store/layout.ts';
import { failingFileSystem } from '../store/bytes/failing-file-system.ts';
import { call, evaluateInput, openWorld, rolloutInput, type World } from './world.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const world = await openWorld();

const bytesOf = (root: string, key: string): string => readFileSync(join(root, key)).toString('base64');

/** Plays on a disk that refuses from its n-th write on, then on the healed disk; true where it never refused. */
async function playRefused(code: string, failing: number, play: (on: World, store: FileStore) => Promise<void>) {
  const root = temporaryFolder();
  const disk = failingFileSystem(code, failing);
  const [refused, healed] = [
    await openWorld({}, { store: new FileStore(root, disk.files) }),
    await openWorld({}, { store: new FileStore(root) }),
  ];
  const failure: unknown = await play(refused, new FileStore(root)).then(
    () => null,
    (error: unknown) => error,
  );
  if (failure !== null) {
    expect(failure).toMatchObject({ type: 'StoreUnavailable', nonRetryable: false });
    expect((failure as Error).message).toMatch(new RegExp(`${code}.*(free some space|read-only)`));
  }
  await play(healed, new FileStore(root));
  return { wasRefused: failure !== null, root };
}

test.each([
  ['ENOSPC', 'each', 1],
  // Both are answered alike: a few places show that this one is known, too.
  ['EROFS', 'every seventh', 7],
])('%s at %s write of a group', async (code, _, stride) => {
  const undisturbed = await rolloutInput(world.store);
  await call(world.activities.rollout, undisturbed);
  let refusals = 0;
  for (let wasRefused = true; wasRefused; refusals += wasRefused ? stride : 0) {
    let input: RolloutInput | undefined;
    const played = await playRefused(code, refusals, async ({ activities }, store) => {
      input = await rolloutInput(store);
      await call(activities.rollout, input);
    });
    wasRefused = played.wasRefused;
    expect(bytesOf(played.root, rolloutsKey(input!))).toBe(bytesOf(world.root, rolloutsKey(undisturbed)));
    expect(bytesOf(played.root, judgedKey(input!))).toBe(bytesOf(world.root, judgedKey(undisturbed)));
  }
  // Twelve answers in the journal, rollouts, verdict and times: every write counts.
  expect(refusals).toBeGreaterThan(20);
});

test('a disk that is full while an evaluation is played', async () => {
  const undisturbed = await evaluateInput(world.store);
  await call(world.activities.evaluate, undisturbed);
  const { wasRefused, root } = await playRefused('ENOSPC', 9, async ({ activities }, store) => {
    await call(activities.evaluate, await evaluateInput(store));
  });
  expect(wasRefused).toBe(true);
  expect(bytesOf(root, evalRolloutsKey(undisturbed))).toBe(bytesOf(world.root, evalRolloutsKey(undisturbed)));
});
