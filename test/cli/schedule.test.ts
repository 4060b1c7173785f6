/** Refusals of `temper schedule` before a server is asked; with one: test/workflows/schedules.test.ts. */
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { scheduleCreateCommand } from '../../cli/schedule/command.ts';
import { planSchedule } from '../../cli/schedule/plan-schedule.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readCheckpoint } from '../../store/records/find-checkpoint.ts';
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
  project = await temporaryProject();
  agent = await writeAgent(project);
});

const complaint = (...args: string[]) => complaintIn(project, ['schedule', ...args]);

const NAMED = ['--name', 'nightly', '--base-model', 'pocket'];
const create = (...flags: string[]) => complaint('create', agent, ...flags);

test('an action that is none, or none at all', async () => {
  expect(await complaint()).toMatchInlineSnapshot(`"temper: ACTION is missing; see temper schedule --help"`);
  expect(await complaint('lsit')).toMatchInlineSnapshot(
    `"temper: unknown command schedule lsit; did you mean temper schedule list?"`,
  );
  expect(await complaint('pause')).toMatchInlineSnapshot(
    `"temper: NAME is missing; usage: temper schedule pause NAME [--reason TEXT]"`,
  );
});

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

describe('create refuses', () => {
  test('times that are missing, double or wrong', async () => {
    expect(await create(...NAMED)).toMatchInlineSnapshot(
      `"temper: a schedule needs a time; pass --every 1d, or --cron '0 3 * * *' (UTC)"`,
    );
    expect(await create(...NAMED, '--every', '1d', '--cron', '0 3 * * *')).toMatchInlineSnapshot(
      `"temper: --every and --cron cannot be combined; pass one of them"`,
    );
    expect(await create(...NAMED, '--every', 'tomorrow')).toMatchInlineSnapshot(
      `"temper: an interval must be a whole number of m, h, d or w (minutes, hours, days, weeks), got "tomorrow"; write it like 6h or 1d"`,
    );
    expect(await create(...NAMED, '--cron', '0 25 * * *')).toMatchInlineSnapshot(
      `"temper: the cron line's hour must be *, or values from 0 to 23 with , - and /, got "25"; write it like '0 3 * * *'"`,
    );
  });

  test('a name that is missing, wrong, or too long for the names of its runs', async () => {
    expect(await create('--every', '1d', '--base-model', 'pocket')).toMatchInlineSnapshot(
      `"temper: --name is missing; pass a name such as --name nightly (its runs are nightly-1, nightly-2, …)"`,
    );
    for (const name of ['a/b', 'Nightly', '', 'a'.repeat(51)])
      expect(await create('--name', name, '--every', '1d', '--base-model', 'pocket')).toContain(
        '--name must be lower case letters',
      );
  });

  test('a base model that is missing, or a folder that workers would not know', async () => {
    expect(await create('--name', 'nightly', '--every', '1d')).toMatchInlineSnapshot(
      `"temper: --base-model is missing; pass --base-model pocket, a name of temporal.config.ts, an OWNER/NAME of the Hugging Face hub, or s3://BUCKET/PREFIX"`,
    );
    const folder = await writeModel(join(project, 'mine'), ['config.json', 'm.safetensors', 'chat_template.jinja']);
    expect(await create('--name', 'nightly', '--every', '1d', '--base-model', folder)).toMatchInlineSnapshot(
      `"temper: workers started later would not know --base-model PROJECT/mine; name it in temporal.config.ts (models: { "mine": "PROJECT/mine" }) and pass --base-model mine"`,
    );
  });

  test('what train refuses', async () => {
    expect(await create(...NAMED, '--every', '1d', '--steps', '0')).toContain('--steps must be at least 1');
    expect(await create(...NAMED, '--every', '1d', '--run', 'x')).toContain('unknown flag --run');
    expect(await create(...NAMED, '--every', '1d', '--warm-start', 'chats.jsonl')).toMatchInlineSnapshot(
      `"temper: unknown flag --warm-start; every run after the first starts from trained weights; to start from chats, run temper sft FILE and pass its run as --from"`,
    );
  });

  test('a beginning that is not there, or does not fit', async () => {
    expect(await create(...NAMED, '--every', '1d', '--from', 'nope')).toContain('no run nope in the store');
    await writeStanding('demo');
    expect(await create(...NAMED, '--every', '1d', '--from', 'demo@9')).toContain('demo@9 is not committed');
    expect(await create(...NAMED, '--every', '1d', '--from', 'demo@last')).toContain(
      'got "demo@last"; see temper runs',
    );
    expect(await create(...NAMED, '--every', '1d', '--from', 'demo@best')).toContain('no checkpoint of demo has been');
    const other = ['--from', 'demo', '--lora-rank', '8'];
    expect(await create(...NAMED, '--every', '1d', ...other)).toMatchInlineSnapshot(
      `"temper: --lora-rank must stay 16 (the run continues the adapter of demo@2), got 8; leave it out"`,
    );
  });

  test('a lineage of its name that does not fit', async () => {
    const store = await writeStanding('nightly-1');
    const checkpoint = await readCheckpoint(store, { run: 'nightly-1', branch: 0, step: 2 });
    await store.publish(
      firingKey('nightly', 1),
      encodeJson({ schema: 1, firing: 'a', run: 'nightly-1', parent: null }),
    );
    await store.publish(conclusionKey('nightly', 1), encodeJson({ schema: 1, checkpoint }));
    expect(await create(...NAMED, '--every', '1d', '--lora-rank', '8')).toMatchInlineSnapshot(
      `"temper: --lora-rank must stay 16 (the run continues the adapter of nightly-1@2), got 8; leave it out"`,
    );
    expect(await create(...NAMED, '--every', '1d', '--from', 'nightly-1')).toMatchInlineSnapshot(
      `"temper: --from has no effect: a schedule nightly has already trained nightly-1 and continues from it; choose another --name, or leave --from out"`,
    );
  });

  test('to work without a server', async () => {
    // A store that has its id: else making it would be the first thing that this command leaves.
    await (await writeStanding('demo')).id();
    expect(await create(...NAMED, '--every', '1d')).toMatchInlineSnapshot(
      `"temper: no local stack is running in this project, and TEMPORAL_ADDRESS is not set; start a local stack with temper dev or temper train"`,
    );
    expect(await complaint('list')).toContain('no local stack is running in this project');
  });
});

describe('backfill refuses', () => {
  test('a span that is none', async () => {
    expect(await complaint('backfill', 'nightly', '--to', '2026-01-01')).toMatchInlineSnapshot(
      `"temper: --from is missing; pass --from 2026-11-21T03:00:00Z"`,
    );
    expect(await complaint('backfill', 'nightly', '--from', 'monday', '--to', '2026-01-01')).toMatchInlineSnapshot(
      `"temper: --from must be an ISO time with its zone, or a date, got "monday"; pass --from 2026-11-21T03:00:00Z"`,
    );
    expect(await complaint('backfill', 'nightly', '--from', '2026-01-02', '--to', '2026-01-01')).toMatchInlineSnapshot(
      `"temper: --from must not be after --to, got 2026-01-02T00:00:00Z and 2026-01-01T00:00:00Z; change one"`,
    );
    expect(await complaint('backfill', 'nightly', '--from', '2026-01-02', '--to', '2999-01-01')).toMatchInlineSnapshot(
      `"temper: --to must not be after now, got 2999-01-01T00:00:00Z; the schedule fires at future times itself"`,
    );
    expect(await complaint('backfill', 'nightly', '--from', '2026-01-02T03:00', '--to', '2026-01-03')).toContain(
      'must be an ISO time with its zone',
    );
  });
});

/** A finished run whose last step is committed. */
async function writeStanding(run: string): Promise<Store> {
  const store = await writeFixtureRun(project, { run, agent: 'guess', steps: 2 });
  const manifest = madeManifest({ branch: 0, step: 2 }, { adapterSha256: 'a'.repeat(64) });
  await store.publish(manifestKey({ run, branch: 0, step: 2 }), encodeJson(manifest));
  return store;
}
