/** Refusals of `temper schedule` before a server is asked; with one: test/workflows/schedules.test.ts. */
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { scheduleCreateCommand } from '../../cli/schedule/command.ts';
import { planSchedule } from '../../cli/schedule/plan-schedule.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { conclusionKey, firingKey, manifestKey } from '../../store/layout.ts';
import type { Store } from '../../store/store.ts';
import { writeAgent, writeModel } from './agents.ts';
import { temporaryProject, writeFixtureRun } from './fixture-store.ts';
import { complaintIn, contextOf } from './run-cli.ts';
import { makeRun } from '../store/records/made-run.ts';
import { madeManifest } from '../store/records/made-manifest.ts';

let project: string;
let agent: string;

beforeEach(async () => {
  project = temporaryProject();
  agent = await writeAgent(project);
});

const complaint = (...args: string[]) => complaintIn(project, ['schedule', ...args]);

const NAMED = ['--name', 'nightly', '--base-model', 'pocket'];
const create = (...flags: string[]) => complaint('create', agent, ...flags);

test('runs have the layout of micro-batches of the one that they continue, unless flags say another', async () => {
  await writeAgent(project, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
  const store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { train: { microBatchTokens: 4096, packing: 'rows' } });
  const layout = async (...flags: string[]) => {
    const words = ['agent.ts', ...NAMED, '--every', '1d', ...flags];
    const { config } = await planSchedule(contextOf(scheduleCreateCommand, project, words));
    return [config.train.microBatchTokens, config.train.packing ?? 'rows'];
  };
  expect(await layout()).toEqual([16_384, 'tree']);
  expect(await layout('--from', 'demo@2')).toEqual([4096, 'rows']);
  expect(await layout('--from', 'demo@2', '--micro-batch-tokens', '99', '--packing', 'tree')).toEqual([99, 'tree']);
});

test.each([
  ['', 'ACTION is missing; see temper schedule --help'],
  ['backfill nightly --to 2026-01-01', '--from is missing; pass --from 2026-11-21T03:00:00Z'],
  [
    'backfill nightly --from monday --to 2026-01-01',
    '--from must be an ISO time with its zone, or a date, got "monday"',
  ],
  ['backfill nightly --from 2026-01-02 --to 2026-01-01', '--from must not be after --to, got 2026-01-02T00:00:00Z and'],
  ['backfill nightly --from 2026-01-02 --to 2999-01-01', '--to must not be after now, got 2999-01-01T00:00:00Z'],
])('temper schedule %s', async (line, message) => {
  expect(await complaint(...line.split(' ').filter(Boolean))).toContain(message);
});

describe('create refuses', () => {
  const POCKET = '--base-model pocket';
  test.each([
    [`--name nightly ${POCKET}`, "a schedule needs a time; pass --every 1d, or --cron '0 3 * * *' (UTC)"],
    [`--name nightly ${POCKET} --every 1d --cron 0~3~*~*~*`, '--every and --cron exclude each other; leave one'],
    [`--name nightly ${POCKET} --every tomorrow`, '--every must be a whole number of m, h, d or w (minutes, hours'],
    [
      `--every 1d ${POCKET}`,
      '--name is missing; pass a name such as --name nightly (its runs are nightly-1, nightly-2',
    ],
    [`--name ${'a'.repeat(51)} --every 1d ${POCKET}`, '--name must be lower case letters'],
    ['--name nightly --every 1d --base-model ./mine', 'workers started later would not know --base-model ./mine'],
    [`--name nightly ${POCKET} --every 1d --steps 0`, '--steps must be at least 1'],
    [
      `--name nightly ${POCKET} --every 1d --warm-start chats.jsonl`,
      'to start from chats, run temper train FILE and pass',
    ],
  ])('%s', async (flags, message) => {
    await writeModel(join(project, 'mine'), ['config.json', 'm.safetensors', 'chat_template.jinja']);
    expect(await create(...flags.split(' ').map((word) => word.replaceAll('~', ' ')))).toContain(message);
  });

  test('a beginning that is not there, or does not fit', async () => {
    expect(await create(...NAMED, '--every', '1d', '--from', 'nope')).toContain('no run nope in the store');
    await writeStanding('demo');
    expect(await create(...NAMED, '--every', '1d', '--from', 'demo@9')).toContain('demo@9 is not committed');
    const other = ['--from', 'demo', '--lora-rank', '8'];
    expect(await create(...NAMED, '--every', '1d', ...other)).toContain('--lora-rank must stay 16');
  });

  test('a lineage of its name that does not fit', async () => {
    const store = await writeStanding('nightly-1');
    const checkpoint = await readCheckpoint(store, { run: 'nightly-1', branch: 0, step: 2 });
    await store.publish(
      firingKey('nightly', 1),
      encodeJson({ schema: 1, firing: 'a', run: 'nightly-1', parent: null }),
    );
    await store.publish(conclusionKey('nightly', 1), encodeJson({ schema: 1, checkpoint }));
    expect(await create(...NAMED, '--every', '1d', '--lora-rank', '8')).toContain('--lora-rank must stay 16');
    expect(await create(...NAMED, '--every', '1d', '--from', 'nightly-1')).toContain(
      '--from has no effect: a schedule nightly has already trained nightly-1 and continues from it',
    );
  });

  test('to work without a server', async () => {
    // A store that has its id: else making it would be the first thing that this command leaves.
    await (await writeStanding('demo')).id();
    expect(await create(...NAMED, '--every', '1d')).toContain('no local stack is running in this project');
  });
});

/** A finished run whose last step is committed. */
async function writeStanding(run: string): Promise<Store> {
  const store = await writeFixtureRun(project, { run, agent: 'guess', steps: 2 });
  const manifest = madeManifest({ branch: 0, step: 2 }, { adapterSha256: 'a'.repeat(64) });
  await store.publish(manifestKey({ run, branch: 0, step: 2 }), encodeJson(manifest));
  return store;
}
