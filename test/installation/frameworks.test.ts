/**
 * One small agent with tools, written for several frameworks: each trains to the same adapter by the same tokens. Each
 * worker is killed once, in the middle of an attempt, between an answer and the tool that it called.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, inject, test } from 'vitest';
import {
  decodeRollouts,
  type AttemptRecord,
  type CallRecord,
  type ChatMessage,
} from '../../store/records/groups/trajectories.ts';
import { paidTwice, readJournals, stepsCommittedTwice } from '../crash/evidence.ts';
import { Project, ProjectFolder, succeed } from '../stack.ts';
import { until } from '../until.ts';
import { engineOf, installClients, TEMPER } from './installation.ts';

const FRAMEWORKS = [
  'openai-chat',
  'openai-stream',
  'openai-responses',
  'openai-agents',
  'ai-sdk',
  'langgraph',
  'anthropic-sdk',
  'mastra',
  'python',
];
/** Undisturbed runs: what Mastra asks is its own, from the third turn on. */
const CALM = 'calm';
const CALM_MASTRA = 'calm-mastra';
const STEPS = 3;
const FLAGS = `--base-model pocket-tools --steps ${STEPS} --groups-per-step 2 --group-size 4 --eval-scenarios 2 --replacement-rounds 0 --learning-rate 1e-3 --max-tokens 64`;

const { folder, env } = inject('installation');
const commands = new ProjectFolder(folder, { env });
const project = new Project({ folder });
const evidence = {
  journals: (run: string) => [project.path('store', 'runs', run, 'journal')],
  log: project.log.bind(project),
  effects: () => [],
};

beforeAll(async () => {
  mkdirSync(join(folder, 'kills'));
  await Promise.all([succeed(train('openai-chat', CALM)), succeed(train('mastra', CALM_MASTRA))]);
});

test.concurrent('clients for Python, and calls of tools by all clients', async () => {
  const python = env['TEMPER_PYTHON']!;
  const clients = new ProjectFolder(folder, { env: { ...env, PYTHONPATH: await installClients(python) } });
  await withServed(`${CALM}@0`, async (serve) => {
    const { engine, key } = engineOf(commands);
    const places = { engine: { url: engine, apiKey: key, model: 'pocket-tools' }, serve };
    const asked = ['env', `PLACES=${JSON.stringify(places)}`];
    await succeed(clients.run(...asked, 'node', '--import', 'temper-rl/typescript', 'clients-calls.ts'));
    await succeed(clients.run(...asked, python, 'clients.py'));
  });
});

/** The policy's answers come from `temper serve`. Untrained, it calls tools as it was taught to. */
async function withServed(
  model: string,
  use: (place: { url: string; apiKey: string; model: string }) => Promise<void>,
) {
  const apiKey = 'a key of this test';
  const serving = new ProjectFolder(folder, { env: { ...env, TEMPER_SERVE_KEY: apiKey } });
  const command = serving.start(TEMPER, 'serve', model, '--port', '0', '--json');
  try {
    const ready = until('it is served', () => command.stdout().includes('\n}'));
    await Promise.race([ready, command.ended.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
    const { baseUrl } = JSON.parse(command.stdout()) as { baseUrl: string };
    await use({ url: baseUrl.replace(/\/v1$/, ''), apiKey, model });
  } finally {
    await serving.endCommands();
  }
}

// At once: most of the time they wait for a heartbeat that does not come.
test.concurrent.each(FRAMEWORKS)(
  '%s: killed in an attempt, it ends with the same tokens and adapter',
  async (framework) => {
    const kill = join(folder, 'kills', `${framework}@1`);
    writeFileSync(kill, '');
    const training = train(framework, framework);
    await until('the worker has killed itself', () => !existsSync(kill));
    const journaled = readJournals(evidence, framework);
    await succeed(training);
    expect(journaled.calls.size).toBeGreaterThan(0);
    expect(paidTwice(evidence, journaled)).toBe(0);
    expect(stepsCommittedTwice(evidence, framework)).toBe(0);
    const calm = framework === 'mastra' ? CALM_MASTRA : CALM;
    expect(await attemptsOf(framework)).toEqual(await attemptsOf(calm));
    expect(adapterOf(framework)).toBe(adapterOf(calm));
  },
);

test('mastra tells turns in which only tools were called as one turn, and nothing else differs', async () => {
  const [attempts, theirs] = await Promise.all([CALM, CALM_MASTRA].map((run) => attemptsOf(run, 1)));
  let told = 0;
  for (const [index, attempt] of attempts!.entries()) {
    const [first, second, third] = turnsOf(attempt);
    const mastra = turnsOf(theirs![index]!);
    expect(mastra.slice(0, 2)).toEqual([first, second].filter((call) => call !== undefined));
    if (third === undefined) continue;
    told += 1;
    expect(mastra[2]?.request).toEqual({ ...third.request, messages: asOneTurn(third.request.messages) });
  }
  expect(told).toBeGreaterThan(0);
});

/** A turn adds the results of its tools. */
const turnsOf = ({ calls }: AttemptRecord): CallRecord[] =>
  calls.toSorted((left, right) => left.request.messages.length - right.request.messages.length);

function asOneTurn(messages: readonly ChatMessage[]): ChatMessage[] {
  const [question, ...turns] = messages as [ChatMessage, ...ChatMessage[]];
  const asked = turns.filter(({ role }) => role === 'assistant');
  expect(asked.filter(({ content }) => Boolean(content))).toEqual([]);
  const calls = asked.flatMap(({ tool_calls: each }) => each as object[]);
  return [question, { ...asked[0]!, tool_calls: calls }, ...turns.filter(({ role }) => role === 'tool')];
}

const train = (framework: string, run: string) =>
  commands.run(TEMPER, 'train', `frameworks/${framework}.ts`, '--run', run, ...FLAGS.split(' '));

/** Each group's requests, samples and rewards: as values, for a framework writes members in an order of its own. */
async function attemptsOf(run: string, steps = STEPS): Promise<AttemptRecord[]> {
  const files = Array.from(
    { length: steps * 2 },
    (_, index) => `${1 + (index >> 1)}/groups/${index % 2}.rollouts.jsonl.gz`,
  );
  const read = async (file: string) => (await decodeRollouts(readFileSync(stepFile(run, file)), file)).attempts;
  return (await Promise.all(files.map(read))).flat();
}

function adapterOf(run: string): string {
  const manifest = JSON.parse(readFileSync(stepFile(run, `${STEPS}/manifest.json`), 'utf8'));
  return (manifest as { adapter: { sha256: string } }).adapter.sha256;
}

const stepFile = (run: string, file: string): string =>
  project.path('store', 'runs', run, 'branches', '0', 'steps', file);
