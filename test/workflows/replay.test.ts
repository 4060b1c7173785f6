import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { afterAll, expect, inject, test } from 'vitest';

import { quietRuntime } from './harness.ts';
import { createReplayer } from './replayer.ts';

quietRuntime();
const replayer = createReplayer({ workflowBundle: { codePath: inject('workflowBundle') } });
afterAll(() => replayer.close());
const HISTORIES = fileURLToPath(new URL('../histories/', import.meta.url));
const names = (await readdir(HISTORIES)).filter((name) => name.endsWith('.json'));

const SAVED =
  'plain continued stopped failed steered judged overlapping overlapping-on supervised warm-started retrained windowed windowed-on';

test('histories are there to be replayed', () => {
  const steps = ['train-step-initialise', 'train-step-train'];
  expect(names).toEqual(expect.arrayContaining([...SAVED.split(' '), ...steps].map((name) => `${name}.json`)));
});

/** Fails where today's code would not have done what a run in flight has done: use `patched()`, or keep the order. */
test.each(names)("today's code replays %s", async (name) => {
  const history: unknown = JSON.parse(await readFile(HISTORIES + name, 'utf8'));
  await expect(replayer.replay(name, history)).resolves.toBeUndefined();
});
