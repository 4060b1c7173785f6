import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { planEvaluate } from '../../../cli/ui/evaluate/plan-evaluate.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import type { Store } from '../../../store/store.ts';
import type { ActionRequest } from '../../../views/api/requests.ts';
import { makeRun } from '../../store/records/made-run.ts';
import { temporaryProject } from '../fixture-store.ts';

const SDK = new URL('../../../sdk/index.ts', import.meta.url).href;
let project: string;
let store: Store;

beforeEach(async () => {
  project = await temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 2 });
  const agent = `import { defineAgent } from '${SDK}';
export default defineAgent({ name: 'toy', scenarios: [{ id: 's0' }], rollout: () => 1 });
`;
  await writeFile(join(project, 'agent.ts'), agent);
});

function plan(request: Partial<ActionRequest>) {
  const place = { project, env: {}, cwd: project, store, signal: new AbortController().signal };
  return planEvaluate({ action: 'evaluate', run: 'demo', isConfirmed: false, ...request }, place);
}

test('an evaluation is told before it is played: how much, with what, and where the result will be', async () => {
  const { says, command } = await plan({ step: 1 });
  expect(says).toContain('demo@1 plays 2 held-out scenarios of demo, each once, with the agent toy.');
  expect(says).toContain('Nothing is stored in the run: the result is a page, .temper/reports/eval-demo@1.html.');
  expect(command).toBe(`temper eval ${join(project, 'agent.ts')} --model demo@1`);
});

test.each([
  [{}, 'step must be the number of a step'],
  [{ step: 7 }, 'demo@7 is not committed'],
  [{ run: 'other', step: 1 }, 'no run "other" in this store'],
])('an evaluation that cannot be played says why: %j', async (request, says) => {
  await expect(plan(request)).rejects.toThrow(says);
});
