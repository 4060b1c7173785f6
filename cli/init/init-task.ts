/**
 * `temper init --task`: a hosted model writes scenarios, an agent and a rubric, and the judge must rank samples by it.
 * Files that exist are kept and used, and each paid answer is stored before use: the same command continues after a kill.
 */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { describeSpending } from '../../core/rules/judge-spending.ts';
import { askStructured, printOutage } from '../../play/hosted/ask-structured.ts';
import { HostedLedger } from '../../play/hosted/hosted-ledger.ts';
import { CONFIG_FILE } from '../../workers/project/folders.ts';
import { dependencyOnThis } from '../../workers/version.ts';
import { EXIT } from '../command-line/errors.ts';
import { loadAgent } from '../planning/load-agent.ts';
import { scenarioLines, spendingTeller } from '../scenarios/lines.ts';
import { makeScenarios } from '../scenarios/make-scenarios.ts';
import { writeGenerated, writeScenarios } from '../scenarios/write-files.ts';
import type { InitContext } from './command.ts';
import { adaptedFile, planPackage } from './plan-files.ts';
import { TEMPLATES } from './templates.ts';
import { AGENT_FILE, agentFile, HELD_OUT_FILE, MAX_TURNS, TRAIN_FILE, type JudgePart } from './agent-file.ts';
import { checkRubric, readExamples, textOf } from './check-rubric.ts';
import { planTask, type HostedPlayer, type TaskPlan, type TaskWork } from './plan-task.ts';
import { agentQuestion } from './questions.ts';

const CONCURRENCY = 8;
const MCP_SDK = { '@modelcontextprotocol/sdk': '^1.25.0' };

export async function initTask(context: InitContext): Promise<number> {
  const { output, cwd } = context;
  const plan = await planTask(context);
  const written = await writeProject(plan);
  if (written.length > 0) output.line(`project: ${written.join(', ')} written`);
  requireInstalled(plan.folder);
  const { store, work, maxUsd } = plan;
  const onSpent = spendingTeller((line) => output.errorLine(line));
  const ledger = await HostedLedger.open({ store, work, maxUsd, onSpent });
  try {
    await writeParts(workOf(plan, ledger));
    output.line(`hosted models: ${describeSpending(ledger.spent)}`);
  } finally {
    await ledger.close();
  }
  for (const line of nextLines(plan, relative(cwd, plan.folder))) output.line(line);
  return EXIT.ok;
}

function workOf(plan: TaskPlan, ledger: HostedLedger): TaskWork {
  const { store, folder, writer, environment } = plan;
  const { signal, output } = environment;
  const outage = printOutage((line) => output.errorLine(line));
  return {
    ...plan,
    ledger,
    ask: (question) => askStructured(question, { ledger, model: writer, signal, outage }),
    write: (name, text) => writeGenerated(store, join(folder, name), new TextEncoder().encode(text)),
  };
}

async function writeParts(work: TaskWork): Promise<void> {
  const { folder, environment } = work;
  const isThere = (name: string) => existsSync(join(folder, name));
  if (isThere(TRAIN_FILE) && isThere(HELD_OUT_FILE)) environment.output.line('scenarios: kept');
  else await writeScenarioFiles(work);
  if (isThere(AGENT_FILE)) environment.output.line('agent: kept');
  else await writeAgent(work);
  await checkRubric(work, await loadAgent(AGENT_FILE, folder));
}

/** Names of the files that were written: those that the folder lacks. */
async function writeProject({ folder, baseModel, tools }: TaskPlan): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const template = {
    dependencies: tools === null ? {} : MCP_SDK,
    scripts: { try: 'temper try', train: 'temper train' },
  };
  const ofPackage = findPackage(folder) === null ? planPackage(folder, template) : [];
  const config = adaptedFile(join('ruler', CONFIG_FILE), TEMPLATES.ruler, baseModel);
  const files = [...ofPackage.map(([name, { text }]) => [name, text] as const), [CONFIG_FILE, config] as const];
  const missing = files.filter(([name]) => !existsSync(join(folder, name)));
  for (const [name, text] of missing) await writeFile(join(folder, name), text);
  return missing.map(([name]) => name);
}

/** The nearest folder upwards that has a package.json. */
function findPackage(folder: string): string | null {
  for (let place = folder; ; place = dirname(place)) {
    if (existsSync(join(place, 'package.json'))) return place;
    if (dirname(place) === place) return null;
  }
}

/** Refuses a folder in which the agent's imports would not be found, before anything is paid for. */
function requireInstalled(folder: string): void {
  try {
    createRequire(join(folder, AGENT_FILE)).resolve('temper-rl');
  } catch (error) {
    // A package that has no entry for `require` is there all the same.
    if ((error as NodeJS.ErrnoException).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') return;
    const remedy =
      findPackage(folder) === folder
        ? `run npm install in ${folder}`
        : `run npm install ${dependencyOnThis().replace('file:', '')}`;
    throw badConfig(`temper-rl must be installed for ${folder}; ${remedy}, then the same command again`);
  }
}

async function writeScenarioFiles(work: TaskWork): Promise<void> {
  const { folder, store, ledger, environment, writer, task, tools, scenarios } = work;
  const { output, signal } = environment;
  const about = tools === null ? [] : [`The agent is for this: ${task}`];
  const wishes = [...about, ...(scenarios.instructions === null ? [] : [scenarios.instructions])];
  const plan = {
    ...scenarios,
    origin: tools === null ? ({ kind: 'task', task } as const) : ({ kind: 'mcp', ...tools } as const),
    instructions: wishes.length === 0 ? null : wishes.join('\n'),
    model: writer,
    tryWith: writer,
    maxTurns: MAX_TURNS,
    seed: 1,
  };
  const tell = (line: string): void => output.errorLine(`scenarios: ${line}`);
  const made = await makeScenarios(plan, { ...work, engine: null, concurrency: CONCURRENCY, signal, tell });
  await writeScenarios(store, join(folder, TRAIN_FILE), made.train);
  await writeScenarios(store, join(folder, HELD_OUT_FILE), made.heldOut);
  for (const line of scenarioLines(made, { train: TRAIN_FILE, heldOut: HELD_OUT_FILE }, ledger.spent))
    output.line(line);
}

/** A system prompt and a rubric of the hosted model, in a file of Temper's template. */
async function writeAgent(work: TaskWork): Promise<void> {
  const { folder, name, task, tools, environment } = work;
  const examples = await readExamples(join(folder, TRAIN_FILE));
  const facts = { task, examples: examples.map(textOf), tools: tools?.server.tools ?? null };
  const texts = await work.ask(agentQuestion(facts));
  const server = tools === null ? null : { options: tools.options, isolate: !tools.server.isReadOnly };
  await work.write(AGENT_FILE, agentFile({ name, task, ...texts, judge: judgePart(work.judge), server }));
  environment.output.line(`agent: ${AGENT_FILE} written`);
}

function judgePart({ name, hosted, price }: HostedPlayer): JudgePart {
  const { baseUrl, model, keyVariable } = hosted;
  return { judge: /^https?:/.test(name) ? { baseUrl, model, keyVariable } : name, price };
}

function nextLines({ name, baseModel }: TaskPlan, folder: string): string[] {
  const place = (text: string) => (/^[\w./:-]+$/.test(text) ? text : JSON.stringify(text));
  return [
    'next:',
    ...(folder === '' ? [] : [`  cd ${place(folder)}`]),
    '  npx temper train',
    `  npx temper eval --model ${place(baseModel)} --model ${name} --judge`,
  ];
}
