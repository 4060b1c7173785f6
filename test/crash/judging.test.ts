/**
 * The TypeScript worker killed in the middle of judging, in a real stack, with a judge that is a real HTTP server and
 * keeps a log of what it was asked: what it answered and the store had received is never asked for again. It is killed
 * at three points of its own, and from outside while the judge keeps it waiting.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { startJudge, type JudgeServer } from '../examples/scripted/judge-server.ts';
import { codeFile } from '../compiled.ts';
import { Project, succeed, type Command } from '../stack.ts';
import { until } from '../until.ts';
import { paidTwice, readJournals, stepsCommittedTwice, type Journaled } from './evidence.ts';

const RULED = pathToFileURL(codeFile('examples/tic-tac-toe-ruler/agent.ts')).href;
const SDK = pathToFileURL(codeFile('sdk/index.ts')).href;
const STEPS = 4;
const GROUPS = 4;
const SIZE = ['--steps', String(STEPS), '--groups-per-step', String(GROUPS), '--group-size', '6'];
const MORE = ['--eval-scenarios', '2', '--seed', '3', '--learning-rate', '4e-3', '--replacement-rounds', '0'];
const ANOTHER_MS = 10_000;
const FLAGS = ['--base-model', 'pocket', ...SIZE, ...MORE];

const project = new Project({ folder: inject('project') });
/** The example with the judge of this test: the stack was started before. */
const agent = join(project.folder, 'ruled.mjs');
/** Has the agent played as long as it runs. */
let stack: Command;
let judge: JudgeServer;

/** The judge's log: a question is known by the name of its first attempt, which hangs on all that was said. */
const asked: string[] = [];
/** While it is set, every question but the next one waits here to be released. */
let holding: { free: number; readonly waiting: (() => void)[] } | null = null;

async function onQuestion([question = '']: readonly string[]): Promise<void> {
  asked.push(question);
  if (holding === null || holding.free-- > 0) return;
  const { waiting } = holding;
  await new Promise<void>((resolve) => waiting.push(resolve));
}

beforeAll(async () => {
  judge = await startJudge({ onQuestion });
  const reward = `ruler({ judge: { baseUrl: '${judge.url}', model: 'scripted' }, rubric: agent.reward.rubric })`;
  const imports = `import { ruler } from '${SDK}';\nimport agent from '${RULED}';`;
  writeFileSync(agent, `${imports}\nexport default { ...agent, reward: ${reward} };\n`);
  stack = project.start('dev', '--agent', agent);
  const isUp = () => stack.output().includes('joined the running local stack') || stack.outcome() !== null;
  await until('the agent is played', isUp);
  expect(stack.outcome(), stack.output()).toBeNull();
});

afterAll(async () => {
  await project.endCommands();
  await judge.close();
});

/** The first question of each answer that the store has, received and therefore paid. */
function received(): string[] {
  const folder = project.path('store', 'runs', 'killed', 'branches');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.answers\/[^/]+\.\d+\.json$/.test(file),
  );
  return files.map((file) => {
    const { text } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { text: string };
    return (JSON.parse(text) as { scores: { id: string }[] }).scores[0]!.id;
  });
}

/** Answers that were paid for when a worker died. */
interface Kill {
  /** Answered questions whose answer the store had. */
  readonly received: readonly string[];
  /** How many questions the judge had been asked. */
  readonly asked: number;
  readonly journaled: Journaled;
}

/** How many answers the store had at each of the four kills. */
type Counts = [number, number, number, number];

const afterDeath = (): Kill => ({
  received: received(),
  asked: asked.length,
  journaled: readJournals(project, 'killed'),
});

/** Asked for though they had been received, and model calls that were made though they stood in the journal. */
function callsPaidTwice(kills: readonly Kill[]): number {
  return kills.reduce((sum, kill) => {
    const again = asked.slice(kill.asked).filter((question) => kill.received.includes(question));
    return sum + again.length + paidTwice(project, kill.journaled);
  }, 0);
}

async function killAt(point: string, occurrence: number): Promise<Kill> {
  const row = `${point} ${occurrence}`;
  project.aim('typescript-worker', { row, point, occurrence });
  await until(`the worker is killed at ${point}`, () => project.hit(row) !== null);
  return afterDeath();
}

/** With one verdict of a step received, and the others on their way. */
async function killWhileItWaits(): Promise<Kill> {
  const before = received().length;
  const waiting: (() => void)[] = [];
  holding = { free: 1, waiting };
  // The question that passed may be one that a dead worker had asked: then another one passes.
  const another = setInterval(() => received().length === before && waiting.shift()?.(), ANOTHER_MS);
  try {
    await until('one question is answered and another waits', () => waiting.length > 0 && received().length > before);
    process.kill(project.pid('worker-ruled'), 'SIGKILL');
    return afterDeath();
  } finally {
    clearInterval(another);
    holding = null;
    for (const release of waiting) release();
  }
}

test('killed in the middle of judging, a run asks for no verdict again that it had received', async () => {
  const run = project.start('train', agent, '--run', 'killed', ...FLAGS);
  const kills = [
    // With the answer in the store, and no verdict made of it.
    await killAt('answer.after', 2),
    // With the verdict for all runs, and the group's own not written. Two may follow from answers of before.
    await killAt('verdict.after', 3),
    await killWhileItWaits(),
    // One of these groups had to wait for its answer.
    await killAt('judged.before', GROUPS),
  ];
  await succeed(run.ended);
  const [answered, verdict, waiting, judged] = kills.map((kill) => kill.received.length) as Counts;
  // The second may follow from what the first left in the store; the others need a new answer.
  expect(answered).toBeGreaterThanOrEqual(2);
  expect(verdict).toBeGreaterThanOrEqual(Math.max(3, answered));
  expect(waiting).toBeGreaterThan(verdict);
  expect(judged).toBeGreaterThan(waiting);
  const summary = {
    kills: kills.length,
    verdicts: received().length,
    questions: asked.length,
    callsPaidTwice: callsPaidTwice(kills),
    stepsCommittedTwice: stepsCommittedTwice(project, 'killed'),
  };
  console.log(JSON.stringify(summary));
  expect(summary).toMatchObject({ verdicts: STEPS * GROUPS, callsPaidTwice: 0, stepsCommittedTwice: 0 });
  // Only what was on its way when a worker died was asked twice; each question has one answer in the store.
  expect(new Set(received()).size).toBe(received().length);
  expect(new Set(received())).toEqual(new Set(asked));
});

test('the same run again asks the judge nothing, and has the bytes of the one that was killed', async () => {
  const questions = asked.length;
  await project.done('train', agent, '--run', 'again', ...FLAGS);
  expect(asked).toHaveLength(questions);
  expect(bytesOf('again')).toEqual(bytesOf('killed'));
});

/** Answers that were paid for stand with the run that paid. */
function bytesOf(run: string): [string, string][] {
  return Object.entries(project.committed(run)).filter(([file]) => !file.includes('.answers/'));
}

test('every attempt was trained with the judge’s score, and none with a reward of its own', () => {
  const folder = project.path('store', 'runs', 'killed', 'branches', '0', 'steps');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.judged.json'),
  );
  expect(files).toHaveLength(STEPS * GROUPS);
  for (const file of files) {
    const judged = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Record<string, unknown>;
    expect(judged).toMatchObject({ judge: 'endpoint/scripted' });
    expect(judged['rewards']).toEqual(judged['scores']);
  }
});
