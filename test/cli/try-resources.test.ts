/** Resources of an agent that is tried: set up and ended as in a run, with leases in the project's store. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { sdkImports, write } from './agents.ts';
import { makeProject, runTry } from './tried-project.ts';

let project: string;
beforeEach(async () => {
  project = await makeProject();
});

test('resources are set up and ended for each attempt, those of the worker once; their leases are in the store', async () => {
  const agent = `import { appendFileSync, readdirSync } from 'node:fs';
${sdkImports('defineAgent', 'resource')}
const tell = (what) => appendFileSync(${JSON.stringify(join(project, 'events'))}, what + '\\n');
const held = (scope) => resource({
  scope,
  setup: () => tell('+ ' + scope),
  teardown: () => tell('- ' + scope),
});
const leases = () => readdirSync(${JSON.stringify(join(project, '.temper', 'store', 'leases', 'held'))});
export default defineAgent({
  name: 'held',
  scenarios: [{ id: 'a' }],
  resources: { server: held('worker'), desk: held('attempt') },
  rollout: () => leases().filter((name) => name.includes('.temper')).length,
});
`;
  await write(join(project, 'agent.ts'), agent);
  const { exitCode, stdout } = await runTry(project, ['--attempts', '2', '--json']);
  expect(exitCode).toBe(0);
  const { scenarios } = JSON.parse(stdout) as { scenarios: { attempts: { reward: number }[] }[] };
  for (const { reward } of scenarios[0]!.attempts) expect(reward).toBeGreaterThanOrEqual(2);
  const events = (await readFile(join(project, 'events'), 'utf8')).trimEnd().split('\n');
  expect(events.toSorted()).toEqual(['+ attempt', '+ attempt', '+ worker', '- attempt', '- attempt', '- worker']);
  expect([events[0], events.at(-1)]).toEqual(['+ worker', '- worker']);
  expect(await readdir(join(project, '.temper', 'store', 'leases', 'held'))).toEqual(['holders']);
});

test('a resource that cannot be set up ends the trial with the reason', async () => {
  const agent = `${sdkImports('defineAgent', 'resource')}
const broken = resource({ scope: 'attempt', setup: () => Promise.reject(new Error('no docker')), teardown: () => 0 });
export default defineAgent({ name: 'broken', scenarios: [{ id: 'a' }], resources: { broken }, rollout: () => 1 });
`;
  await write(join(project, 'agent.ts'), agent);
  expect(await runTry(project, [])).toMatchObject({
    exitCode: 1,
    stderr:
      'temper: the resource broken could not be set up (Error: no docker); mend what its setup needs, or its setup',
  });
});
