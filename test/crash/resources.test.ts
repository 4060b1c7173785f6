/**
 * A worker killed while its attempts, their groups and itself hold resources, in a real stack: each of them is ended, by
 * the retry, by the worker that follows or by `temper doctor leases`, and none that is in use.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { codeFile } from '../compiled.ts';
import { processesLike } from '../processes.ts';
import { Project, succeed } from '../stack.ts';
import { until } from '../until.ts';

const AGENT = codeFile('test/crash/agents/resources.ts');
const GROUPS = 2;
const SIZE = 3;
const SIZES = ['--steps', '1', '--groups-per-step', String(GROUPS), '--group-size', String(SIZE)];
const FLAGS = ['--base-model', 'pocket', ...SIZES, '--eval-scenarios', '1', '--replacement-rounds', '0'];

const folder = inject('project');
// The stack's workers have it: teardowns by a command of this test need it, too.
const project = new Project({ folder, env: { TEMPER_CRASH_FOLDER: join(folder, 'points') } });
const place = join(project.points, 'resources');

function events(): { kind: string; scope: string; id: string }[] {
  const file = join(place, 'events');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  return lines.map((line) => {
    const [kind = '', scope = '', id = ''] = line.split(' ');
    return { kind, scope, id };
  });
}

/** Ids that were set up and not ended since. */
function open(scope: string): string[] {
  const of = (kind: string) => events().filter((event) => event.scope === scope && event.kind === kind);
  const ended = new Set(of('-').map(({ id }) => id));
  return of('+').flatMap(({ id }) => (ended.has(id) ? [] : [id]));
}

const processes = (): number[] => processesLike((line) => /^temper[0-9a-f]{16} /.test(line));

const doctor = async () => {
  const { code, output } = await project.run('doctor', 'leases', AGENT, '--json');
  const json = output.slice(output.indexOf('{'));
  const { leases } = JSON.parse(json) as { leases: { id: string; state: string }[] };
  return { code, states: leases.map(({ state }) => state), ids: leases.map(({ id }) => id) };
};

test('no lease outlives a kill, and none that is in use is ended', async () => {
  const running = project.start('train', AGENT, '--run', 'leased', ...FLAGS);
  const areSetUp = () => open('attempt').length === GROUPS * SIZE || running.outcome() !== null;
  await until('all attempts have their resources', areSetUp);
  expect(running.outcome(), running.output()).toBeNull();
  const before = ['attempt', 'group', 'worker'].flatMap(open);
  expect(before).toHaveLength(GROUPS * SIZE + GROUPS + 1);

  const asked = await doctor();
  expect(asked).toMatchObject({ code: 0, states: before.map(() => 'in use') });
  expect(asked.ids.toSorted()).toEqual(before.toSorted());
  expect(['attempt', 'group', 'worker'].flatMap(open)).toEqual(before);

  process.kill(project.pid('worker-resources'), 'SIGKILL');
  const areNew = () => !open('attempt').some((id) => before.includes(id)) && open('attempt').length === GROUPS * SIZE;
  await until('a retry has ended the resources of attempts, and set up others', areNew);
  expect(open('group').filter((id) => before.includes(id))).toEqual([]);
  writeFileSync(join(place, 'go'), '');
  await succeed(running.ended);

  // The killed worker's own is ended by the next one, if that lives long enough, or now.
  const last = await doctor();
  expect(last).toMatchObject({ code: 0, states: last.states.map(() => 'ended') });
  const files = readdirSync(project.path('store', 'leases'), { recursive: true, encoding: 'utf8' });
  expect(files.filter((file) => file.endsWith('lease.json'))).toEqual([]);
  expect(['attempt', 'group', 'worker'].flatMap(open)).toEqual([]);
  expect(processes()).toEqual([]);
  expect(readdirSync(place).toSorted()).toEqual(['events', 'go']);
  const rollouts = project.path('store', 'runs', 'leased', 'branches', '0', 'steps', '1', 'groups');
  expect(readdirSync(rollouts).filter((name) => name.endsWith('.judged.json'))).toHaveLength(GROUPS);
});
