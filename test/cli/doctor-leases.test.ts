/** `temper doctor leases` where the processes that held something are gone; that one which lives is spared, the crash suite shows. */
import { existsSync, mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { AgentResources } from '../../play/resources/agent-resources.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { Leases } from '../../store/records/groups/leases.ts';
import { sdkImports, write } from './agents.ts';
import { complaintIn, runCli } from './run-cli.ts';
import { makeProject } from './tried-project.ts';

/** An agent whose resource is a folder of the project, which cannot be ended while there is a file `stuck`. */
const agentOf = (project: string) => `import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
${sdkImports('defineAgent', 'resource')}
const path = (name) => join(${JSON.stringify(project)}, name);
const folder = resource({
  scope: 'attempt',
  setup: ({ id }) => id,
  teardown({ id }) {
    if (existsSync(path('stuck'))) throw new Error('it is stuck');
    rmSync(path(id), { recursive: true, force: true });
  },
});
export default defineAgent({ name: 'folders', scenarios: [], resources: { folder }, rollout: () => 1 });
`;

async function leak(project: string, name: string): Promise<string> {
  const leases = new Leases(await openStore(join(project, '.temper', 'store')), 'folders');
  const place = { run: 'demo', branch: 0, step: 3, part: '1' };
  const facts = { name, scope: 'attempt', holder: 'e'.repeat(16), place, scenario: 's1', attempt: 2 } as const;
  const lease = new AgentResources({ agent: 'folders', resources: {}, leases }).createLease(facts);
  await leases.open(lease);
  mkdirSync(join(project, lease.id));
  return lease.id;
}

/** With numbers in the place of ids, and without the age. */
function inOrder(text: string, ids: readonly string[]): string {
  const numbered = ids.reduce((all, id, index) => all.replaceAll(id, `temper-${index}`.padEnd(id.length)), text);
  return numbered.replaceAll(/ {2}(\d[\d.]* s|age) +/g, '  AGE  ');
}

test('leaked leases are listed, and ended by the teardown of their agent', async () => {
  const project = await makeProject();
  await write(join(project, 'agent.ts'), agentOf(project));
  const doctor = (...words: string[]) => runCli(project, ['doctor', 'leases', ...words]);
  expect(await doctor()).toEqual({ exitCode: 0, stdout: 'no leases', stderr: '' });
  const ids = [await leak(project, 'folder')];
  const listed = await doctor();
  expect([listed.exitCode, listed.stderr]).toEqual([1, '']);
  expect(inOrder(listed.stdout, ids)).toMatch(/^temper-0 +folders +folder +demo +3 +1 +s1 +2 +AGE +leaked$/m);
  expect(listed.stdout).toContain('0 leases in use, 1 leaked; name the agent’s file to end them: temper doctor leases');
  await write(join(project, 'stuck'), '');
  const kept = inOrder((await doctor('agent.ts')).stdout, ids);
  expect(kept).toMatch(/^temper-0 .* AGE +not ended: Error: it is stuck\n0 leases in use, 0 ended, 1 left$/m);
  expect(existsSync(join(project, ids[0]!))).toBe(true);
  await rm(join(project, 'stuck'));
  const { exitCode, stdout } = await doctor('agent.ts', '--json');
  const told = JSON.parse(stdout) as { leases: object[] };
  expect({ exitCode, leases: told.leases }).toMatchObject({
    exitCode: 0,
    leases: [
      {
        id: ids[0],
        agent: 'folders',
        resource: 'folder',
        run: 'demo',
        step: 3,
        group: '1',
        scenario: 's1',
        attempt: 2,
      },
    ],
  });
  expect(told.leases[0]).toMatchObject({ state: 'ended', problem: null });
  expect(existsSync(join(project, ids[0]!))).toBe(false);
  expect((await doctor()).stdout).toBe('no leases');
});

test('a resource that the agent no longer has is left, and said so', async () => {
  const project = await makeProject();
  await write(join(project, 'agent.ts'), agentOf(project));
  const ids = [await leak(project, 'renamed')];
  const { exitCode, stdout } = await runCli(project, ['doctor', 'leases', 'agent.ts']);
  expect(exitCode).toBe(1);
  expect(inOrder(stdout, ids)).toMatch(
    / AGE +not ended: the agent has no resource renamed now\n0 leases in use, 0 ended, 1 left$/,
  );
});

test('a file that is not there is named', async () => {
  const complaint = await complaintIn(await makeProject(), ['doctor', 'leases', 'none.ts']);
  expect(complaint).toContain('the agent file PROJECT/none.ts does not exist');
});
