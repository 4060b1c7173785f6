/** Every flag and field of temporal.config.ts is asked for its effect: one without any fails here. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { evalCommand } from '../../cli/eval/command.ts';
import { readPlannedEval } from '../../cli/eval/read-planned-eval.ts';
import { scheduleCreateCommand } from '../../cli/schedule/command.ts';
import { readPlannedSchedule } from '../../cli/schedule/read-planned-schedule.ts';
import { forkCommand } from '../../cli/fork/command.ts';
import { readPlannedFork } from '../../cli/fork/read-planned-fork.ts';
import { flagWords } from '../../cli/train/project-flags.ts';
import { readPlannedRun } from '../../cli/train/read-planned-run.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { tryCommand } from '../../cli/try/command.ts';
import { readPlannedTry } from '../../cli/try/read-planned-try.ts';
import { RUN_FLAG_ROWS, RUN_FLAGS } from '../../cli/train/run-flag-table.ts';
import { RunConfig } from '../../core/contract.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { runKey } from '../../store/layout.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { readRun } from '../../store/records/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { defineConfig, TemperConfigSchema } from '../../workers/config.ts';
import { projectFolders } from '../../workers/folders.ts';
import { absoluteModels } from '../../workers/local-stack/known-models.ts';
import { specifyStack } from '../../workers/local-stack/specify.ts';
import { activityOptions, workflowOptions } from '../../workers/worker/worker.ts';
import { byTest, textOf, type ShownByTest } from '../by-test.ts';
import { fieldOf, leavesOf, setField } from '../schema-leaves.ts';
import { makeRun } from '../store/records/made-run.ts';

import { write, writeAgent } from './agents.ts';
import { temporaryFolder } from './fixture-store.ts';
import { contextOf, runCli } from './run-cli.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const source = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** Made once: what is planned changes nothing of it. */
const project = mkdtempSync(join(tmpdir(), 'temper-options-'));
beforeAll(() => fill(project));
afterAll(() => rmSync(project, { recursive: true }));

async function fill(folder: string): Promise<Store> {
  await write(join(folder, 'package.json'), '{}');
  await writeAgent(folder, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
  const store = await openStore(join(folder, '.temper', 'store'));
  await makeRun(store, { steps: 5, evals: { 2: 0.75 } });
  return store;
}

const ENV = { OPENAI_API_KEY: 'x', MY_KEY: 'secret' };
/** Of a line `train …`. */
const trainLine = (line: string, folder = project) => contextOf(trainCommand, folder, line.split(' ').slice(1), ENV);

/** What a command plans from the words after its name, before it starts anything. */
const PLANS: Readonly<Record<string, (words: readonly string[]) => Promise<object>>> = {
  train: (words) => readPlannedRun(contextOf(trainCommand, project, words, ENV)),
  fork: (words) => readPlannedFork(contextOf(forkCommand, project, words, ENV)),
  eval: (words) => readPlannedEval(contextOf(evalCommand, project, words, ENV)),
  try: (words) => readPlannedTry(contextOf(tryCommand, project, words, ENV)),
  'schedule create': (words) => readPlannedSchedule(contextOf(scheduleCreateCommand, project, words, ENV)),
};

/** Two ways of giving a command its arguments. Planned, or else run; what comes of them must differ. */
type Probe = readonly [without: string, given: string] | ShownByTest;

const TRAIN = 'train agent.ts --base-model pocket';
const EVAL = 'eval agent.ts --model openai/gpt-5';
const TRY = 'try agent.ts --model openai/gpt-5';
const SCHEDULE = 'schedule create agent.ts --base-model pocket --name nightly --every 1d';
const PRUNE = 'checkpoints demo prune --dry-run --keep-last';
const json = (command: string): Probe => [command, `${command} --json`];
const added = (command: string, flag: string): Probe => [command, `${command} ${flag}`];
const REASONS = byTest(
  'workflows/reasons.test.ts',
  'the reasons that a person gives on the command line stand in the run',
);
const STEERING = byTest(
  'crash/steering.test.ts',
  'a run is paused, changed and resumed; when it has ended it goes back, and the old branch stays',
);
const BACKFILL = byTest(
  'workflows/schedules.test.ts',
  'a backfill fires for each time that has passed, one run after the other',
);
const FAILED_FIRING = byTest(
  'workflows/schedules.test.ts',
  'a run that fails pauses its schedule, with the reason; resumed, it begins with the last good checkpoint',
);
const REMOTE_WORKER = byTest(
  'cli/gpu-worker.test.ts',
  'the worker finds store, queue, key and Temporal where the project and the environment say',
);
const STACK_WORKER = byTest(
  'workers/config.test.ts',
  'is told device, type and memory of temporal.config.ts, and of flags before it',
);

const SERVED = byTest('cli/serve.test.ts', 'it answers until Ctrl-C, and tells itself as JSON');

function shownBy(proof: ShownByTest, commands: readonly string[], flags: readonly string[]): Record<string, Probe> {
  return Object.fromEntries(commands.flatMap((command) => flags.map((flag) => [`${command} --${flag}`, proof])));
}

const FLAGS: Readonly<Record<string, Probe>> = {
  ...shownBy(REASONS, ['pause', 'stop', 'set', 'rollback'], ['reason']),
  'train --run': added(TRAIN, '--run other'),
  'fork --run': ['fork demo@2 agent.ts --run a', 'fork demo@2 agent.ts --run b'],
  'runs --json': json('runs'),
  'show --json': json('show demo'),
  'report --out': added('report demo', '--out here.html'),
  'rollback --step': STEERING,
  'rollback --set': STEERING,
  'schedule create --name': ['schedule create agent.ts --base-model pocket --name a --every 1d', SCHEDULE],
  'schedule create --every': [SCHEDULE, SCHEDULE.replace('1d', '2d')],
  'schedule create --cron': [SCHEDULE, SCHEDULE.replace('--every 1d', '--cron 0~3~*~*~*')],
  'schedule create --from': added(SCHEDULE, '--from demo@2'),
  ...shownBy(FAILED_FIRING, ['schedule list', 'schedule show'], ['json']),
  'schedule pause --reason': byTest(
    'workflows/schedules.test.ts',
    'a paused schedule tells why and fires no more by itself',
  ),
  ...shownBy(BACKFILL, ['schedule backfill'], ['from', 'to']),
  'checkpoints --keep-last': [`${PRUNE} 1`, `${PRUNE} 4`],
  'checkpoints --keep-best': added(`${PRUNE} 1`, '--keep-best solvedRate:1'),
  'checkpoints --keep-every': added(`${PRUNE} 1`, '--keep-every 3'),
  'checkpoints --dry-run': added('checkpoints demo prune --keep-last 1', '--dry-run'),
  'checkpoints --with-pruned': byTest(
    'store/records/copy-run.test.ts',
    'a copy of a pruned run says so; what was pruned comes back when it is asked for',
  ),
  'checkpoints --json': json('checkpoints demo'),
  'verify --no-recompute': added('verify demo@99', '--no-recompute'),
  'verify --json': json('verify demo --no-recompute'),
  'eval --model': ['eval agent.ts --model openai/gpt-5', 'eval agent.ts --model demo'],
  'eval --scenarios': added(EVAL, '--scenarios 3'),
  'eval --base-url': added(EVAL, '--base-url http://127.0.0.1:9/v1'),
  'eval --key-env': added('eval agent.ts --model http://127.0.0.1:9#m', '--key-env MY_KEY'),
  'eval --price': added(EVAL, '--price openai/gpt-5=1/2'),
  'eval --temperature': added(EVAL, '--temperature 0.5'),
  'eval --max-tokens': added(EVAL, '--max-tokens 99'),
  'eval --seed': added(EVAL, '--seed 7'),
  'eval --concurrency': added(EVAL, '--concurrency 2'),
  'eval --out': byTest('cli/eval.test.ts', 'the page shows every model’s attempt at a scenario, side by side'),
  'eval --json': byTest('cli/eval.test.ts', '--json prints means and intervals, --scenarios plays fewer'),
  'try --model': added('try agent.ts', '--model demo'),
  'try --scenario': added(TRY, '--scenario s2'),
  'try --scenarios': added(TRY, '--scenarios 5'),
  'try --attempts': added(TRY, '--attempts 5'),
  'try --temperature': added(TRY, '--temperature 0.5'),
  'try --max-tokens': added('try agent.ts', '--max-tokens 99'),
  'try --eval': added(TRY, '--eval'),
  'try --replay': added(TRY, '--replay'),
  'try --save': byTest('cli/try.test.ts', '--save writes attempts that replayAttempt plays again'),
  'try --json': byTest('cli/try.test.ts', '--json has the calls, without token ids'),
  'dev --agent': byTest(
    'crash/judging.test.ts',
    'killed in the middle of judging, a run asks for no verdict again that it had received',
  ),
  'dev --ui-port': byTest('workers/local-stack/local-stack.test.ts', 'refuses a port that was asked for and is taken'),
  'dev --engine-port': byTest('workers/config.test.ts', 'is refused ports of what no local stack starts'),
  'export --to': byTest('cli/export.test.ts', 'goes into an empty folder, and into a new one below a new one'),
  'export --format': byTest('cli/export.test.ts', 'is told as JSON'),
  'export --dtype': byTest('cli/export.test.ts', 'are made by Python, and described'),
  'export --json': byTest('cli/export.test.ts', 'is told as JSON'),
  ...shownBy(SERVED, ['serve'], ['host', 'port', 'device', 'dtype', 'json']),
  'serve --allow-host': byTest(
    'cli/serve.test.ts',
    'an address that is open to other machines needs a key of the environment, and names of its own',
  ),
  ...shownBy(STACK_WORKER, ['train', 'fork', 'dev'], ['device', 'dtype']),
  ...shownBy(REMOTE_WORKER, ['gpu-worker'], ['host', 'port', 'allow-host', 'threads']),
  'worker --agent': byTest(
    'crash/frozen.test.ts',
    'a second TypeScript worker frozen while it polls costs one time-out for each task, does nothing with it when thawed, and the bytes are those of one worker',
  ),
  'doctor --agent': byTest(
    'workers/worker/worker.test.ts',
    'polls the workflows and its agent, is back after a kill, and is started anew when the agent changed',
  ),
  'doctor --json': json('doctor'),
};

/** A value that is not the default, with what else it needs. */
const RUN_FLAG_VALUES: Readonly<Record<string, string>> = {
  'base-model': 'pocket-tools',
  'learning-rate-schedule': 'linear',
  'final-learning-rate-share': '0.5 --learning-rate-schedule linear',
  'lora-target-modules': 'q_proj,v_proj',
  loss: 'ppo',
  'dual-clip': '4 --loss ppo',
  'advantage-scale': 'group-std',
  truncated: 'keep',
  judge: 'openai/gpt-5',
  'max-judge-usd': '3',
};

const isShared = new Set(Object.keys(RUN_FLAGS));
const SHARING = new Set(['train', 'fork', 'schedule create']);
const ALL = COMMANDS.flatMap((command) => [command, ...(command.actions ?? [])]);
const OWN_FLAGS = ALL.flatMap(({ name, flags }) =>
  Object.keys(flags)
    .filter((flag) => !SHARING.has(name) || !isShared.has(flag))
    .map((flag) => `${name} --${flag}`),
);

async function outcome(line: string): Promise<unknown> {
  const args = line.split(' ').map((word) => word.replaceAll('~', ' '));
  const name = Object.keys(PLANS).find((plan) => line.startsWith(`${plan} `));
  const fresh = await temporaryFolder();
  if (name === undefined) {
    execFileSync('cp', ['-r', `${project}/.`, fresh]);
    const { exitCode, stdout, stderr } = await runCli(fresh, args);
    return { exitCode, said: `${stdout}\n${stderr}`.replaceAll(fresh, 'PROJECT') };
  }
  try {
    const { store: _, ...plan } = (await PLANS[name]!(args.slice(name.split(' ').length))) as object & {
      store?: Store;
    };
    return plan;
  } catch (error) {
    return String(error);
  }
}

describe('flags', () => {
  test('each has a probe, and each probe a flag', () => {
    expect(Object.keys(FLAGS).toSorted()).toEqual(OWN_FLAGS.toSorted());
  });

  test.each(OWN_FLAGS)('%s has an effect, or is refused by name', async (flag) => {
    const probe = FLAGS[flag]!;
    if ('title' in probe) {
      const name = flag.slice(flag.indexOf('--') + 2);
      expect(textOf(probe)).toMatch(new RegExp(String.raw`\b${name.replaceAll('-', '-?')}\b`, 'i'));
      return;
    }
    const [without, given] = [await outcome(probe[0]), await outcome(probe[1])];
    expect(given).not.toEqual(without);
    if (JSON.stringify(given).includes('unknown flag')) expect.unreachable(`${flag} is no flag`);
  });

  test.each([...SHARING])('%s takes every flag of a run', (name) => {
    const { flags } = ALL.find((command) => command.name === name)!;
    expect([...isShared].filter((flag) => !Object.hasOwn(flags, flag))).toEqual([]);
  });
});

describe('the configuration of a run', () => {
  test.each(RUN_FLAG_ROWS.map(([flag, { path, kind }]) => ({ flag, path, kind })))(
    '--$flag changes $path, or is refused by name',
    async ({ flag, path, kind }) => {
      const given = RUN_FLAG_VALUES[flag] ?? (kind === 'boolean' ? '' : kind === 'integer' ? '3' : '0.125');
      const line = flag === 'base-model' ? 'train agent.ts' : TRAIN;
      const { config: before } = await readPlannedRun(trainLine(TRAIN));
      const after = await readPlannedRun(trainLine(`${line} --${flag} ${given}`.trim())).then(
        ({ config }) => fieldOf(config, path),
        (error: Error) => error.message,
      );
      expect(after).not.toEqual(fieldOf(before, path));
      if (typeof after === 'string' && after.includes(' ')) expect(after).toContain(`--${flag}`);
    },
  );

  test('a run that was recorded with a loss goes on with it, by the same command', async () => {
    const same = '--run demo --steps 5 --groups-per-step 2 --group-size 2 --loss ppo';
    const folder = await temporaryFolder();
    const store = await fill(folder);
    const { file } = (await readRun(store, 'demo'))!;
    const loss = { name: 'ppo', epsilonLow: 0.2, epsilonHigh: 0.28, dualClip: 3 } as const;
    const config = { ...file.config, train: { ...file.config.train, loss } };
    await store.replace(runKey('demo'), encodeJson({ ...file, config }));
    const { existing } = await readPlannedRun(trainLine(`${TRAIN} ${same}`, folder));
    expect(existing?.file.config.train.loss).toEqual(loss);
    await expect(readPlannedRun(trainLine(`${TRAIN} ${same} --dual-clip 4`, folder))).rejects.toThrow('have no effect');
  });

  const paths = leavesOf(RunConfig).map(({ path }) => path);

  test.each(paths)('%s is read by what plays, judges, trains or plans', (path) => {
    const name = path.split('.').at(-1)!;
    const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const read = new RegExp(String.raw`\b(${name}|${snake})\b`);
    expect(READERS.filter((file) => read.test(source(file)))).not.toEqual([]);
  });
});

/** Where a field of a run's configuration can have an effect: not where it is defined, given its default or only copied. */
const LIST = 'ls-files -co --exclude-standard core workflows activities play sdk gpu-worker/temper_gpu';
const READERS = execFileSync('git', LIST.split(' '), { cwd: ROOT, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((file) => /\.(ts|py)$/.test(file) && !/contract|run-defaults|describe-config|options\.ts$/.test(file));

describe('temporal.config.ts', () => {
  /** Values that are not the defaults, with what else they need. */
  const FIELDS: Readonly<Record<string, readonly [value: unknown, besides?: object]>> = {
    store: ['s3://bucket/here'],
    'queues.workflows': ['other'],
    'queues.gpu': ['h200'],
    'capacity.workflowTasks': [3],
    'capacity.cachedWorkflows': [7],
    'capacity.rollouts': [9],
    'engine.url': ['http://gpu-host:8000'],
    'engine.keyVariable': ['MY_KEY', { engine: { url: 'http://gpu-host:8000' } }],
    'engine.threads': [7],
    'engine.device': ['cuda:1'],
    'engine.dtype': ['bfloat16'],
    'engine.kvCacheBytes': [2 ** 30],
    'engine.slots': [64],
    models: [{ mine: './models/mine' }],
    train: [{ steps: 60 }],
    'localStack.temporalPort': [9001],
    'localStack.uiPort': [9002],
    'localStack.enginePort': [9003],
    'localStack.standby': [false],
  };

  test('each field has a probe', () => {
    const fields = leavesOf(TemperConfigSchema).map(({ path }) => path);
    expect(Object.keys(FIELDS).toSorted()).toEqual(fields.toSorted());
  });

  test.each(Object.keys(FIELDS))('%s has an effect', async (path) => {
    const [value, besides = {}] = FIELDS[path]!;
    const given = setField(structuredClone(besides) as Record<string, unknown>, path, value);
    expect(await madeOf(given)).not.toEqual(await madeOf(besides));
  });

  /** All that processes are started with. */
  async function madeOf(input: object): Promise<object> {
    const config = defineConfig(input);
    const commands = { temporal: ['temporal'], gpuWorker: ['gpu-worker'], worker: ['worker'] };
    const install = { env: {}, cache: project, onEvent: () => undefined };
    const options = { project, agentFile: null, models: {}, onEvent: () => undefined, commands };
    const spec = await specifyStack({ folders: projectFolders(project), config, install, options });
    const models = absoluteModels(project, config.models);
    return { spec, models, flags: flagWords(config), worker: [workflowOptions(config), activityOptions(config)] };
  }
});
