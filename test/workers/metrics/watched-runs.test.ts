/** Metrics of runs are sums over what was committed: a restart, a retry and a rollback change none of them wrongly. */
import { expect, test } from 'vitest';
import type { RunState } from '../../../core/contract/contract.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { runKey, stateKey } from '../../../store/layout.ts';
import { addToCurve } from '../../../store/records/runs/curve.ts';
import type { Store } from '../../../store/store.ts';
import { writeFamilies, type Sample } from '../../../workers/metrics/exposition.ts';
import { ProcessMetrics } from '../../../workers/metrics/process-metrics.ts';
import { runFamilies } from '../../../workers/metrics/run-families.ts';
import { WatchedRuns } from '../../../workers/metrics/watched-runs.ts';
import { fixtureState, summary } from '../../cli/fixture-store.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const RUNNING = { state: 'running', steps: 400 } as const;
const HOUR_MS = 3_600_000;

const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** The files that are read, as a run leaves them. */
async function writeRun(store: Store, run: string, steps: number, state: Partial<RunState>): Promise<void> {
  const config = defaultRunConfig({ run, agent: 'tic-tac-toe', baseModel: 'pocket', steps: 400 });
  const record = { schema: 1, config, agentCodeSha256: 'e'.repeat(64), versions: {}, parent: null };
  await store.publish(runKey(run), encodeJson(record));
  const summaries = upTo(1, steps).map((step) => summary(step, steps));
  await addToCurve(store, run, { branch: 0, step: steps }, summaries, () => undefined);
  await store.replace(stateKey(run), encodeJson({ ...fixtureState(run, steps), ...state }));
}

async function openRun(steps = 24): Promise<Store> {
  const store = await openStore(temporaryFolder());
  await writeRun(store, 'demo', steps, RUNNING);
  return store;
}

interface Watching {
  readonly agents?: readonly string[];
  readonly now?: () => number;
}

function watch(store: Store, { agents = ['tic-tac-toe'], ...others }: Watching = {}) {
  const metrics = new ProcessMetrics();
  const runs = new WatchedRuns({ store, agents, metrics, client: null, ...others });
  return { runs, metrics, samples: async () => samplesOf(await runs.collect()) };
}

/** Values by `name label=value`; labels that all samples of a run have are left out. */
function samplesOf(watched: Parameters<typeof runFamilies>[0]): Record<string, number> {
  const described = ({ labels: { run: _run, agent: _agent, base_model: _base, ...own } }: Sample) =>
    Object.entries(own).map(([name, value]) => ` ${name}=${value}`);
  return Object.fromEntries(
    runFamilies(watched).flatMap(({ name, samples }) =>
      samples.map((sample) => [`${name.replace('temper_run_', '')}${described(sample).join('')}`, sample.value]),
    ),
  );
}

async function recordSteps(store: Store, branch: number, steps: readonly number[]): Promise<void> {
  const last = steps.at(-1)!;
  for (const step of steps) await addToCurve(store, 'demo', { branch, step }, [summary(step, 400)], () => undefined);
  await store.replace(stateKey('demo'), encodeJson({ ...fixtureState('demo', last), ...RUNNING, branch }));
}

test('a run that was under way is told of at once, with what its curve says', async () => {
  const store = await openRun();
  const found = await watch(store).samples();
  const last = summary(24, 24);
  expect(found).toMatchObject({
    'state state=running': 1,
    'state state=failed': 0,
    step: 24,
    target_steps: 400,
    reward: last.reward,
    entropy: last.train['entropy'],
    'steps_total outcome=trained': 24,
    'attempts_total outcome=failed': upTo(1, 24).reduce((sum, step) => sum + summary(step, 24).failedAttempts, 0),
    sampled_tokens_total: upTo(1, 24).reduce((sum, step) => sum + summary(step, 24).sampledTokens, 0),
    evaluation_reward: fixtureState('demo', 24).evalAfter!.reward,
  });
  expect(found['last_step_timestamp_seconds']).toBeGreaterThan(Date.now() / 1000 - 600);
  expect(found['median_step_seconds']).toBeGreaterThan(0);
});

test('counters are the same in a worker that starts anew, and after an activity that was repeated', async () => {
  const store = await openRun();
  const watching = watch(store);
  await watching.samples();
  await recordSteps(store, 0, [25, 26]);
  await recordSteps(store, 0, [26]);
  const found = await watching.samples();
  expect(found['steps_total outcome=trained']).toBe(26);
  expect(await watch(store).samples()).toEqual(found);
});

test('a rollback moves the run back and takes nothing back that was counted', async () => {
  const store = await openRun(130);
  const watching = watch(store);
  await watching.samples();
  await store.replace(stateKey('demo'), encodeJson({ ...fixtureState('demo', 90), ...RUNNING, branch: 1 }));
  const back = await watching.samples();
  expect([back['step'], back['branch'], back['steps_total outcome=trained']]).toEqual([90, 1, 130]);
  await recordSteps(store, 1, upTo(91, 95));
  const found = await watching.samples();
  expect([found['step'], found['steps_total outcome=trained']]).toEqual([95, 135]);
  expect(found['reward']).toBe(summary(95, 400).reward);
});

test('a run that ended is told of for an hour, and again once an activity of it comes', async () => {
  const store = await openRun();
  let nowMs = 0;
  const watching = watch(store, { now: () => nowMs });
  await watching.samples();
  await store.replace(stateKey('demo'), encodeJson(fixtureState('demo', 24)));
  expect((await watching.samples())['state state=completed']).toBe(1);
  nowMs = HOUR_MS + 1;
  await watching.samples();
  expect(await watching.samples()).toEqual({});
  watching.runs.tell('demo');
  expect((await watching.samples())['step']).toBe(24);
});

test('runs of other agents, and runs that had ended before, are not told of', async () => {
  const store = await openRun();
  await writeRun(store, 'over', 3, {});
  expect((await watch(store).runs.collect()).map(({ facts }) => facts.config.run)).toEqual(['demo']);
  const other = watch(store, { agents: ['other'] });
  other.runs.tell('demo');
  expect(await other.samples()).toEqual({});
});

test('a broken record hides no other run, and is counted', async () => {
  const store = await openRun();
  await writeRun(store, 'broken', 3, RUNNING);
  await store.replace(runKey('broken'), encodeJson({ schema: 1 }));
  const { samples, metrics } = watch(store);
  expect((await samples())['step']).toBe(24);
  expect(writeFamilies(metrics.families())).toContain('temper_metrics_errors_total{source="store"} 1\n');
});
