import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { planEvaluation } from '../../../cli/ui/actions/evaluate.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { readRun } from '../../../store/records/runs/run-reader.ts';
import type { Store } from '../../../store/store.ts';
import { agentCodeSha256 } from '../../../workers/user-code/agent-code.ts';
import { rememberAgent } from '../../../workers/user-code/known-agents.ts';
import { makeRun } from '../../store/records/made-run.ts';
import { temporaryProject } from '../fixture-store.ts';
import { sdkImports } from '../agents.ts';

let project: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 2 });
  const agent = `${sdkImports('defineAgent')}
export default defineAgent({ name: 'toy', scenarios: [{ id: 's0' }], rollout: () => 1 });
`;
  await writeFile(join(project, 'agent.ts'), agent);
});

function plan(step: number, run = 'demo') {
  const { signal } = new AbortController();
  const place = {
    project,
    env: {},
    cwd: project,
    store: () => Promise.resolve(store),
    signal,
    gone: signal,
    requestId: 'a',
  };
  return planEvaluation(place, { run, step, agentFile: null });
}

test('an evaluation is told before it is played: how much, with what, and where the result will be', async () => {
  const { says, command } = await plan(1);
  expect(says).toContain('demo@1 plays 2 held-out scenarios of demo, each once, with the agent toy.');
  expect(says).toContain('Nothing is stored in the run: the result is a page, .temper/reports/eval-demo@1.html.');
  expect(command).toBe(`temper eval ${join(project, 'agent.ts')} --model demo@1`);
});

test('an evaluation that cannot be played says why', async () => {
  await expect(plan(7)).rejects.toThrow('demo@7 is not committed');
  await expect(plan(1, 'other')).rejects.toThrow('no run "other" in this store');
});

test('the agent of a run that was started with a file outside of the project is found by its code, as long as it has it', async () => {
  const elsewhere = temporaryProject();
  const file = join(elsewhere, 'toy.ts');
  await rename(join(project, 'agent.ts'), file);
  const codeSha256 = await agentCodeSha256(file);
  const raw = JSON.parse(await readFile(join(project, '.temper/store/runs/demo/run.json'), 'utf8')) as object;
  await writeFile(
    join(project, '.temper/store/runs/demo/run.json'),
    JSON.stringify({ ...raw, agentCodeSha256: codeSha256 }),
  );
  await expect(plan(1)).rejects.toThrow('no file below');
  rememberAgent(project, { file, codeSha256 });
  expect(await plan(1)).toMatchObject({ command: `temper eval ${file} --model demo@1` });
});

test('a file outside of the project that has changed since is not run, and named', async () => {
  const elsewhere = temporaryProject();
  const file = join(elsewhere, 'toy.ts');
  await rename(join(project, 'agent.ts'), file);
  const run = await readRun(store, 'demo');
  rememberAgent(project, { file, codeSha256: run!.file.agentCodeSha256 });
  await expect(plan(1)).rejects.toThrow(`${file}, which the run was started with, has changed or is gone`);
});
