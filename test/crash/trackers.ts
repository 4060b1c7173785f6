/**
 * A run of 60 steps with three trackers, and kills at 30 seeded moments: of the TypeScript worker, of the Temporal server,
 * and of each tracker. Then a run whose MLflow server is away for the first half. Run it with
 * `node --import ./workers/typescript.js test/crash/trackers.ts [SEED] [KILLS]`; it takes minutes. The last line is one JSON
 * object, and the exit code 1 if something is wrong.
 */
import { readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StepSummary } from '../../core/contract/contract.ts';
import { createRandom } from '../../core/numbers/seeds.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { readCursor } from '../../store/records/production/outbound-cursor.ts';
import { readState, readSteps } from '../../store/records/runs/run-reader.ts';
import type { Fault } from '../outbound/stand-in.ts';
import { startMlflow } from '../outbound/track/mlflow-stand-in.ts';
import { startTrackio } from '../outbound/track/trackio-stand-in.ts';
import { startWandb } from '../outbound/track/wandb-stand-in.ts';
import { useCompiledCode } from '../compiled.ts';
import { Project, ticTacToe } from '../stack.ts';
import { until } from '../until.ts';

const SEED = Number(process.argv[2] ?? 1);
/** Kills, one for every second step. */
const KILLS = Number(process.argv[3] ?? 30);
const TRACKERS = ['wandb', 'mlflow', 'trackio'] as const;
const VICTIMS = ['worker-', 'worker-', 'temporal-server', ...TRACKERS] as const;
const AWAY_MS = 3000;
const WITHIN_MS = 1_800_000;

type Tracker = (typeof TRACKERS)[number];

/** Until when each is away. What it does at its death is done, but not answered. */
const away: Record<Tracker, number> = { wandb: 0, mlflow: 0, trackio: 0 };
const dying = new Set<Tracker>();
const faultOf = (name: Tracker) => (): Fault | null => {
  if (dying.delete(name)) return 'lost';
  return Date.now() < away[name] ? 'away' : null;
};

const wandb = await startWandb({ fault: faultOf('wandb') });
const mlflow = await startMlflow({ fault: faultOf('mlflow') });
const trackio = await startTrackio({ fault: faultOf('trackio') });
Object.assign(process.env, {
  WANDB_API_KEY: wandb.key,
  WANDB_BASE_URL: wandb.url,
  MLFLOW_TRACKING_URI: mlflow.url,
  TRACKIO_SERVER_URL: trackio.url,
  TRACKIO_WRITE_TOKEN: trackio.key,
});
const compiled = await useCompiledCode();
const track = TRACKERS.map((kind) => ({ kind }));
const project = new Project({ config: { track, localStack: { standby: false } } });
const store = new FileStore(project.path('store'));

const train = (run: string, steps: number) =>
  project.start(
    'train',
    ticTacToe(),
    ...`--run ${run} --base-model pocket --steps ${steps} --groups-per-step 2 --group-size 4`.split(' '),
    ...'--eval-every 20 --eval-scenarios 4'.split(' '),
  );

const stepOf = async (run: string): Promise<number> => (await readState(store, run).catch(() => null))?.step ?? 0;

function kill(victim: (typeof VICTIMS)[number]): void {
  if (victim === 'wandb' || victim === 'mlflow' || victim === 'trackio') {
    dying.add(victim);
    away[victim] = Date.now() + AWAY_MS;
    return;
  }
  try {
    process.kill(project.pid(victim), 'SIGKILL');
  } catch {
    // It has just died, or is not there again yet: this moment passes.
  }
}

async function playKills(run: string): Promise<Record<string, number>> {
  const random = createRandom(SEED);
  const running = train(run, 2 * KILLS);
  const killed: Record<string, number> = {};
  for (let index = 0; index < KILLS; index++) {
    const at = 1 + Math.floor((index * (2 * KILLS - 3)) / KILLS);
    await until(`step ${at}`, async () => (await stepOf(run)) >= at, WITHIN_MS, 100);
    await sleep(random() * 1500);
    const victim = VICTIMS[Math.floor(random() * VICTIMS.length)]!;
    kill(victim);
    killed[victim] = (killed[victim] ?? 0) + 1;
    console.log(
      `${new Date().toISOString().slice(11, 19)} kill ${index + 1} of ${victim} at step ${await stepOf(run)}`,
    );
  }
  const { code, output } = await running.ended;
  if (code !== 0) throw new Error(`train ended with ${code}: ${output.slice(-2000)}`);
  return killed;
}

/** `temper track` tells the rest, for which a command line had no patience. */
async function finish(run: string): Promise<string[]> {
  const late: string[] = [];
  for (const name of TRACKERS) {
    if ((await readCursor(store, run, name))?.ended === 'finished') continue;
    late.push(name);
    // A tracker that was killed last is away for some seconds more.
    const tell = async () => (await project.run('track', run, '--to', name, '--backfill')).code === 0;
    await until(`${name} was told of ${run}`, tell, 120_000, 1000);
  }
  return late;
}

function check(run: string, steps: readonly StepSummary[]): void {
  const expected = JSON.stringify(steps.map(({ step, reward }) => [step, reward]));
  const wandbRuns = [...wandb.runs.values()].filter(({ displayName }) => displayName === run);
  const history = wandbRuns[0]?.history ?? [];
  const ofWandb = history.flatMap((row) =>
    row['train/reward'] === undefined ? [] : [[row['training_step'], row['train/reward']]],
  );
  const mlflowRuns = mlflow.runs.filter(({ tags }) => tags['temper.run'] === run);
  const ofMlflow = mlflowRuns.flatMap(({ metrics }) =>
    [...metrics.values()].flatMap(({ key, step, value }) => (key === 'train/reward' ? [[step, value]] : [])),
  );
  const ofTrackio = [...trackio.rows.values()].flatMap(({ run: of, step, metrics }) =>
    of === run && metrics['train/reward'] !== undefined ? [[step, metrics['train/reward']]] : [],
  );
  const found = { wandb: ofWandb, mlflow: ofMlflow, trackio: ofTrackio };
  for (const [name, rows] of Object.entries(found))
    if (JSON.stringify(rows) !== expected) throw new Error(`${name} holds ${JSON.stringify(rows)}, not ${expected}`);
  const ends = [wandbRuns.map(({ exitcode }) => exitcode), mlflowRuns.map(({ status }) => status)];
  if (JSON.stringify(ends) !== '[[0],["FINISHED"]]') throw new Error(`ends are ${JSON.stringify(ends)}`);
}

try {
  const killed = await playKills('killed');
  const late = await finish('killed');
  check('killed', await readSteps(store, 'killed'));
  console.log(
    `killed: ${2 * KILLS} steps, each once and in order in three trackers · kills ${JSON.stringify(killed)} · late: ${late.join(', ') || 'none'}`,
  );

  away.mlflow = Infinity;
  const running = train('half', 20);
  await until('half of the run', async () => (await stepOf('half')) >= 10, WITHIN_MS, 100);
  away.mlflow = 0;
  const { code, output } = await running.ended;
  if (code !== 0) throw new Error(`train ended with ${code}: ${output.slice(-2000)}`);
  const lateHalf = await finish('half');
  check('half', await readSteps(store, 'half'));
  console.log(`half: MLflow was away for 10 of 20 steps and is complete · late: ${lateHalf.join(', ') || 'none'}`);
  const violations = [wandb, mlflow, trackio].flatMap((each) => each.violations);
  if (violations.length > 0) throw new Error(violations.join('\n'));
  const logs = readFileSync(project.path('logs', 'gpu-worker.jsonl'), 'utf8');
  if ([wandb.key, trackio.key].some((key) => logs.includes(key))) throw new Error('a key stands in a log');
  console.log(JSON.stringify({ steps: 2 * KILLS + 20, killed, late, lateHalf }));
} finally {
  await project.close();
  await Promise.all([wandb.close(), mlflow.close(), trackio.close()]);
  for (const folder of compiled) rmSync(folder, { recursive: true, force: true });
}
