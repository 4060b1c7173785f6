/** Every flag is asked for its effect: one without any fails here. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { listCommands } from '../../cli/commands.ts';
import { evalCommand } from '../../cli/eval/command.ts';
import { planEval } from '../../cli/eval/plan-eval.ts';
import { scenariosCommand } from '../../cli/scenarios/command.ts';
import { planScenarios } from '../../cli/scenarios/plan-scenarios.ts';
import { deployCommand } from '../../cli/deploy/command.ts';
import { planDeployment } from '../../operations/plan-deployment.ts';
import { reviewCommand } from '../../cli/review/command.ts';
import { planReview } from '../../cli/review/review.ts';
import { serveCommand } from '../../cli/serve/command.ts';
import { planRecording, planServe } from '../../cli/serve/plan-serve.ts';
import { scheduleCreateCommand } from '../../cli/schedule/command.ts';
import { planSchedule } from '../../cli/schedule/plan-schedule.ts';
import { initCommand } from '../../cli/init/command.ts';
import { planTask } from '../../cli/init/plan-task.ts';
import { trainCommand } from '../../cli/train/command.ts';
import { planTrain } from '../../cli/train/train.ts';
import { tryCommand } from '../../cli/try/command.ts';
import { planTry } from '../../cli/try/plan-try.ts';
import { RUN_FLAG_ROWS, RUN_FLAGS } from '../../cli/planning/run-flag-table.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import { deploy } from '../../operations/deployments.ts';
import { OPERATIONS } from '../../operations/index.ts';
import { inputOf } from '../../operations/operation.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import { fieldOf } from '../schema-leaves.ts';
import { makeRun } from '../store/records/made-run.ts';
import { fakePrograms } from '../workers/install/fake-programs.ts';

import { write, writeAgent } from './agents.ts';
import { ADDED, CHANGED, TRAIN } from './flag-probes.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { contextOf, runCli } from './run-cli.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const source = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const CLI_FILES = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'cli/*.ts'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .trim()
  .split('\n');

/** Made once: what is planned changes nothing of it. */
const project = temporaryFolder();
const programs = fakePrograms();
/** What Python was started with, a setting a line. */
const STARTED = join(programs.folder, 'started');
beforeAll(async () => {
  programs.addShell(
    'python',
    `if [ "$1" = -c ]; then echo missing:; exit; fi
    if [ "$2" = temper_gpu.process ]; then set -- "$3" "$(cat)"; fi
    echo "$*" | sed 's/,/,\\n/g' > '${STARTED}'`,
  );
  await fill(project);
});

function chatOf(content: string): string {
  return JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content })) });
}

async function fill(folder: string): Promise<Store> {
  await write(join(folder, 'package.json'), '{}');
  await write(join(folder, 'chat.jinja'), '{{ messages[0].content }}');
  await write(join(folder, 'chats.jsonl'), Array.from({ length: 40 }, (_, index) => chatOf(`${index}`)).join('\n'));
  await writeAgent(folder, { name: 'toy', scenarios: 'Array.from({ length: 9 }, (_, id) => ({ id: `s${id}` }))' });
  const store = await openStore(join(folder, '.temper', 'store'));
  await makeRun(store, { steps: 5, evals: { 2: 0.75 } });
  return store;
}

const KEY = 'k'.repeat(43);
const ENV = {
  ...programs.env,
  PATH: `${programs.env['PATH']}:${process.env['PATH']}`,
  TEMPER_PYTHON: join(programs.folder, 'bin', 'python'),
  TEMPER_ENGINE_KEY: KEY,
  TEMPER_SERVE_KEY: KEY,
  TEMPER_REVIEW_KEY: KEY,
  OPENAI_API_KEY: 'x',
  MY_KEY: 'secret',
};
/** The context of a line `train …`. */
const trainLine = (line: string, folder = project) => contextOf(trainCommand, folder, line.split(' ').slice(1), ENV);

/** Plans that commands make of the words after their names, before anything is started. */
const PLANS: Readonly<Record<string, (words: readonly string[]) => Promise<object>>> = {
  'init --task': async (words) => {
    const { environment: _, ...plan } = await planTask(contextOf(initCommand, project, ['--task', ...words], ENV));
    return plan;
  },
  train: async (words) => planTrain(contextOf(trainCommand, project, words, ENV), 'estimate'),
  eval: async (words) => planEval(contextOf(evalCommand, project, words, ENV)),
  scenarios: async (words) => planScenarios(contextOf(scenariosCommand, project, words, ENV)),
  try: async (words) => planTry(contextOf(tryCommand, project, words, ENV)),
  'schedule create': async (words) => planSchedule(contextOf(scheduleCreateCommand, project, words, ENV)),
  deploy: async (words) => {
    const { args, flags, env } = contextOf(deployCommand, project, words, ENV);
    const store = await openStore(join(project, '.temper', 'store'));
    return planDeployment(inputOf(deploy, args, flags), { project, env }, store);
  },
  serve: async (words) => {
    const context = contextOf(serveCommand, project, words, ENV);
    return { ...planServe(context), recording: planRecording(context, { key: '' }) };
  },
  review: async (words) => planReview(contextOf(reviewCommand, project, words, ENV)),
};

/** A value that is not the default, with what else it needs. */
const RUN_FLAG_VALUES: Readonly<Record<string, string>> = {
  'base-model': 'pocket-tools',
  'learning-rate-schedule': 'linear',
  'final-learning-rate-share': '0.5 --learning-rate-schedule linear',
  'learning-rate-restarts': '2 --learning-rate-schedule cosine',
  'lora-target-modules': 'q_proj,v_proj',
  'lora-layers': '0-1,3',
  'chat-template': 'chat.jinja',
  'chat-template-kwargs': '{"enable_thinking":false}',
  loss: 'ppo --passes 2',
  'dual-clip': '4 --loss ppo --passes 2',
  'max-shift': '0.1 --loss dppo --passes 2',
  'log-ratio-penalty': '0.1 --loss dppo --passes 2',
  'tau-positive': '2 --loss sapo --passes 2',
  'tau-negative': '2 --loss sapo --passes 2',
  'epsilon-low': '0.5 --passes 2',
  'epsilon-high': '0.5 --passes 2',
  reduction: 'attempt',
  correction: 'token-mask',
  'kl-reference': 'demo@2 --kl-coefficient 0.1',
  'kl-as': 'reward --kl-coefficient 0.1',
  'kl-estimator': 'k3',
  'overlong-penalty': '2 --overlong-buffer 8',
  'correction-cap': '3 --correction token-mask --max-staleness 1',
  'reduction-tokens': '100 --reduction constant',
  'advantage-scale': 'group-std',
  'advantage-baseline': 'rae',
  optimizer: 'adamw_8bit',
  packing: 'rows',
  truncated: 'keep',
  judge: 'openai/gpt-5',
  'max-cost-usd': '3 --gpu-usd-per-hour 1',
};

const isShared = new Set(Object.keys(RUN_FLAGS));
const SHARING = new Set(['train', 'schedule create']);
const ALL = (await listCommands()).flatMap((command) => [command, ...(command.actions ?? [])]);
const OWN_FLAGS = ALL.flatMap(({ name, flags }) =>
  Object.keys(flags)
    .filter((flag) => !SHARING.has(name) || !isShared.has(flag))
    .map((flag) => `${name} --${flag}`),
);

interface Probe {
  readonly flag: string;
  readonly without: string;
  readonly given: string;
  readonly shows: string | RegExp;
}

/** The value behind the first of these words. */
const valueIn = (words: string): string => words.split(' ')[1] ?? `a value in ${words}`;
const commandOf = (line: string) => ALL.findLast(({ name }) => `${line} `.startsWith(`${name} `))!.name;

const PROBES: readonly Probe[] = [
  ...Object.entries(ADDED).flatMap(([without, all]) =>
    all.map((one): Probe => {
      const [given, shows] = typeof one === 'string' ? [one, valueIn(one)] : one;
      return { flag: `${commandOf(without)} ${given.split(' ')[0]}`, without, given: `${without} ${given}`, shows };
    }),
  ),
  ...Object.entries(CHANGED).map(([flag, [without, given, shows]]): Probe => {
    const words = given.slice(given.indexOf(flag.slice(flag.indexOf('--'))));
    return { flag, without, given, shows: shows ?? valueIn(words) };
  }),
];

/** Lines that many flags are compared with are planned once. */
const outcomes = new Map<string, Promise<readonly string[]>>();

function outcomeOnce(line: string): Promise<readonly string[]> {
  const found = outcomes.get(line) ?? outcome(line);
  outcomes.set(line, found);
  return found;
}

/** What a command plans, value by value, or else what it says when it runs, with what it starts Python with. */
async function outcome(line: string): Promise<readonly string[]> {
  const args = line.split(' ').map((word) => word.replaceAll('~', ' '));
  const name = Object.keys(PLANS).find((plan) => line.startsWith(`${plan} `) || line === plan);
  // An estimate is made of a plan, and says more.
  if (name !== undefined && !args.includes('--estimate'))
    return PLANS[name]!(args.slice(name.split(' ').length)).then(valuesOf, (error: Error) => [error.message]);
  const fresh = temporaryFolder();
  // No file of a store is written in its place.
  execFileSync('cp', ['-rl', `${project}/.`, fresh]);
  rmSync(STARTED, { force: true });
  const { stdout, stderr } = await runCli(fresh, args, { env: ENV });
  const settings = existsSync(STARTED) ? readFileSync(STARTED, 'utf8') : '';
  return `${stdout}\n${stderr}\n${settings}`.replaceAll(fresh, 'PROJECT').split('\n');
}

/** `config.train.lora.rank: 8`, for each value within a plan. */
function valuesOf(plan: unknown, path = ''): string[] {
  if (typeof plan === 'function') return [];
  if (plan === null || typeof plan !== 'object' || plan instanceof Uint8Array)
    return [`${path}: ${JSON.stringify(plan)}`];
  const entries = plan instanceof Map ? [...plan] : Object.entries(plan);
  return entries.filter(([key]) => key !== 'store').flatMap(([key, value]) => valuesOf(value, `${path}.${key}`));
}

describe('flags', () => {
  test('each probe is of a flag', () => {
    expect(PROBES.map(({ flag }) => flag).filter((flag) => !OWN_FLAGS.includes(flag))).toEqual([]);
  });

  test.each(PROBES)('$flag makes the difference that it says, or is refused by name: $given', async (probe) => {
    const { flag, without, given, shows } = probe;
    const before = new Set(await outcomeOnce(without));
    const added = (await outcome(given)).filter((line) => !before.has(line));
    const isMeant = (line: string) => (typeof shows === 'string' ? line.includes(shows) : shows.test(line));
    const name = flag.slice(flag.indexOf('--'));
    const isRefused = (line: string) => line.includes(name) && !line.includes('unknown flag');
    expect(
      added.filter((line) => isMeant(line) || isRefused(line)),
      added.join('\n'),
    ).not.toEqual([]);
  });

  /** What takes a server or a player to see has a test where it acts; here only that its command looks at it at all. */
  test.each(OWN_FLAGS.filter((flag) => !PROBES.some((probe) => probe.flag === flag)))('%s is read', (flag) => {
    const [command = '', name = ''] = flag.split(' --');
    expect(takenBy(command)).toContain(name);
  });

  test.each([...SHARING])('%s takes every flag of a run', (name) => {
    const { flags } = ALL.find((command) => command.name === name)!;
    expect([...isShared].filter((flag) => !Object.hasOwn(flags, flag))).toEqual([]);
  });
});

/** Flags that are taken in a command's definition, in the files beside it, and in folders that it imports. */
function takenBy(name: string): Set<string> {
  // A command may do more than its operation.
  if (Object.values(OPERATIONS).some((operation) => operation.name === name))
    return new Set([...takenByOperations(), ...filesIn(`cli/${name}`).map(source).flatMap(takenIn)]);
  const own = CLI_FILES.find((file) => file.endsWith('/command.ts') && source(file).includes(`name: '${name}',`))!;
  const definition = source(own)
    .split('\nexport const ')
    .find((text) => text.includes(`name: '${name}',`))!;
  const texts = [definition, ...filesIn(dirname(own)).map(source)];
  const imported = [source(own), ...texts].flatMap((text) =>
    [...text.matchAll(/(?:from |import\()'\.\.\/([\w-]+)\//g)].map(([, folder]) => folder!),
  );
  const others = [...new Set(imported)].flatMap((folder) => filesIn(`cli/${folder}`).map(source));
  return new Set([...texts, ...others].flatMap(takenIn));
}

/** Members of inputs that operations take apart, as flags; the adapter takes `json`. */
function takenByOperations(): Set<string> {
  const found = readdirSync(join(ROOT, 'operations'), { recursive: true, encoding: 'utf8' });
  const files = found
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(ROOT, 'operations', file), 'utf8'));
  const apart = files.flatMap((text) => [...text.matchAll(/\{([^{}]*)\}(?:: |, place|\) =>| = \w+;)/g)]);
  const members = apart.flatMap(([, names = '']) => names.match(/\w+/g) ?? []);
  return new Set(['json', ...members.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`))]);
}

/** Without definitions, of which one file may hold several. */
const filesIn = (folder: string) =>
  CLI_FILES.filter((file) => file.startsWith(`${folder}/`) && !file.endsWith('/command.ts'));

/** Flags whose values a text takes: `flags.name`, `flags['name']`, or by name from what `flags` is taken apart into. */
function takenIn(text: string): string[] {
  const single = [...text.matchAll(/(?:flags|asked)(?:\.(\w+)|\['([\w-]+)'\])/g)].map(
    ([, name, quoted]) => name ?? quoted!,
  );
  const apart = [...text.matchAll(/\{([^{}]*)\}[^=;{}]*= (?:\w+\.)?flags\b/g)].map(([, names]) => names!);
  return [...single, ...apart.flatMap((names) => names.match(/[\w-]+/g) ?? [])];
}

describe('the configuration of a run', () => {
  let before: RunConfig;
  beforeAll(async () => {
    ({ config: before } = await planTrain(trainLine(TRAIN), 'estimate'));
  });

  test.each(RUN_FLAG_ROWS.map(([flag, { path, kind }]) => ({ flag, path, kind })))(
    '--$flag changes $path, or is refused by name',
    async ({ flag, path, kind }) => {
      const given = RUN_FLAG_VALUES[flag] ?? (kind === 'boolean' ? '' : kind === 'integer' ? '3' : '0.125');
      const line = flag === 'base-model' ? 'train agent.ts' : TRAIN;
      const after = await planTrain(trainLine(`${line} --${flag} ${given}`.trim()), 'estimate').then(
        ({ config }) => fieldOf(config, path),
        (error: Error) => error.message,
      );
      expect(after).not.toEqual(fieldOf(before, path));
      if (typeof after === 'string' && after.includes(' ')) expect(after).toContain(`--${flag}`);
    },
  );
});
