import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { Engines } from '../../../cli/ui/chat/engines.ts';
import { replay, sayReplay } from '../../../cli/ui/replay/replay-action.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import { ENGINE_KEY_VARIABLE } from '../../../core/contract/wire-constants.ts';
import type { Agent } from '../../../play/agent.ts';
import { connectEngine } from '../../../play/connections/engine-connection.ts';
import { playSingle } from '../../../play/single-attempt.ts';
import { openStore } from '../../../store/bytes/open-store.ts';
import { rolloutsKey } from '../../../store/layout.ts';
import { listReplays, readReplay } from '../../../store/records/groups/replays.ts';
import { adapterOfPolicy } from '../../../store/records/runs/manifest.ts';
import { readManifest } from '../../../store/records/runs/run-reader.ts';
import { encodeRollouts, type AttemptRecord } from '../../../store/records/groups/trajectories.ts';
import { verifyRun } from '../../../store/records/verify/verify-run.ts';
import type { Store } from '../../../store/store.ts';
import type { ViewContext } from '../../../views/context/context.ts';
import { viewAttemptOf } from '../../../views/attempts/attempt.ts';
import { importDefault } from '../../../workers/user-code/import-file.ts';
import { startFakeEngine, type FakeEngine } from '../../fake-engine.ts';
import { makeRun } from '../../store/records/made-run.ts';
import { temporaryProject } from '../fixture-store.ts';
import { sdkImports } from '../agents.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

/** Three calls, each with the answers so far. */
const AGENT = `${sdkImports('defineAgent')}
export default defineAgent({
  name: 'toy',
  scenarios: [{ id: 's0' }],
  async rollout({ scenario, openai, model }) {
    const said = [];
    for (let turn = 0; turn < 3; turn++) {
      const content = [scenario.id, ...said].join(' ');
      const { choices } = await openai.chat.completions.create({ model, messages: [{ role: 'user', content }] });
      said.push(choices[0].message.content);
    }
    return { reward: said.length, metrics: {} };
  },
});
`;
const ORIGIN = '0.1.7.0';

let project: string;
let store: Store;
let engine: FakeEngine;
let adapters: Record<string, string>;

beforeEach(async () => {
  project = temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 2 });
  await mkdir(join(project, 'agents'));
  await writeFile(join(project, 'agents', 'toy.ts'), AGENT);
  const found = await Promise.all(
    [0, 1, 2].map(async (step) => {
      const manifest = (await readManifest(store, { run: 'demo', branch: 0, step }))!;
      return [`demo@${step}`, adapterOfPolicy('demo', manifest).sha256] as const;
    }),
  );
  adapters = Object.fromEntries(found);
  engine = await startFakeEngine({ adapterSha256: (model) => adapters[model] ?? null });
  onTestFinished(() => engine.close());
  await writeFile(join(project, 'temporal.config.ts'), `export default { engine: { url: '${engine.url}' } };`);
  vi.stubEnv(ENGINE_KEY_VARIABLE, engine.key);
  onTestFinished(() => void vi.unstubAllEnvs());
  await record();
});

/** Plays the agent with the first policy, and stores it beside the groups of the plan. */
async function record(): Promise<void> {
  const { rollout, seed } = defaultRunConfig({ run: 'demo', agent: 'toy', baseModel: 'pocket' });
  const { record: played } = await playSingle({
    agent: (await importDefault(join(project, 'agents', 'toy.ts'))) as Agent,
    engine: connectEngine(engine),
    resources: null,
    planned: { attempt: 0, scenarioIndex: 0, scenario: { id: 's0' } },
    policy: { model: 'demo@0', adapterSha256: adapters['demo@0']! },
    mode: 'train',
    rollout,
    place: { branch: 0, step: 1, seed },
    signal: new AbortController().signal,
  });
  await writeRecord(played);
}

async function writeRecord(played: AttemptRecord): Promise<void> {
  const place = { branch: 0, step: 1, group: 7 };
  const header = {
    schema: 1,
    inputsSha256: 'x',
    ...place,
    scenario: 0,
    scenarioId: 's0',
    adapterSha256: adapters['demo@0']!,
    attempts: 1,
  } as const;
  await store.publish(rolloutsKey({ run: 'demo', ...place }), await encodeRollouts({ header, attempts: [played] }));
}

const STAYS = new AbortController().signal;

type Request = Partial<Parameters<typeof replay>[0]> & { requestId?: string };

async function plan({ requestId, ...request }: Request = {}, env: NodeJS.ProcessEnv = {}, gone = STAYS) {
  const engines = new Engines({ project, env, store, storeUri: null });
  const place = {
    project,
    env,
    cwd: project,
    store: () => Promise.resolve(store),
    signal: STAYS,
    gone,
    engines: () => Promise.resolve(engines),
    requestId: requestId ?? 'unnamed',
    isNamed: requestId !== undefined,
  };
  const input = { run: 'demo', attempt: ORIGIN, fromTurn: 1, model: 'demo@2', agentFile: null, ...request };
  const { says } = await sayReplay(input, place);
  return { says, perform: async () => ({ made: (await replay(input, place)).made.attempt }) };
}

async function allKeys(): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.describe('runs')) keys.push(key);
  return keys.toSorted();
}

const contentsOf = ({ calls }: AttemptRecord) => calls.map(({ message }) => message.content);

test('calls before the turn keep their answers, those from it on are of the other checkpoint, and the recorded attempt stays as it is', async () => {
  const before = await allKeys();
  const planned = await plan();
  const { says } = planned;
  expect(says).toContain('Turn 1 of 3 gets its recorded answer; from turn 2 on, demo@2 answers.');
  expect(says).toContain('2 calls with ');
  expect(says).toContain('agents/toy.ts, which has changed since the run was started');
  expect(await allKeys()).toEqual(before);
  const executed = engine.executed.length;
  const { made } = await planned.perform();
  const id = made.replace('replay.', '');
  expect((await allKeys()).filter((key) => !before.includes(key))).toEqual([
    `runs/demo/replays/${id}.rollouts.jsonl.gz`,
  ]);
  expect(engine.executed.slice(executed).map(({ request }) => request.model)).toEqual(['demo@2', 'demo@2']);
  const { header, record: replayed } = (await readReplay(store, 'demo', id))!;
  const origin = await viewAttemptOf(viewsOf(), 'demo', ORIGIN);
  expect(header.replay).toMatchObject({ attempt: ORIGIN, fromCall: 1, model: 'demo@2' });
  expect(replayed.calls.map(({ adapterSha256 }) => adapterSha256)).toEqual(
    ['demo@0', 'demo@2', 'demo@2'].map((name) => adapters[name]),
  );
  const [first, second] = contentsOf(replayed);
  expect(first).toBe(origin.turns[0]!.answer.text);
  expect(replayed.calls[2]!.request.messages).toEqual([
    { role: 'user', content: `s0 ${String(first)} ${String(second)}` },
  ]);
  expect(replayed).toMatchObject({ status: 'ok', reward: 3 });
});

const viewsOf = (): ViewContext => ({
  store,
  index: undefined as never,
  readVocabulary: async () => null,
  now: Date.now,
});

test('a replay is read as an attempt, and listed on the one that it was made of', async () => {
  const { made } = await (await plan()).perform();
  const view = await viewAttemptOf(viewsOf(), 'demo', made);
  expect(view).toMatchObject({
    row: { id: made, group: null, reward: 3, use: 'replay' },
    title: `replay of ${ORIGIN}`,
    policy: 'demo@2',
    replayOf: { attempt: ORIGIN, fromTurn: 1, model: 'demo@2' },
  });
  expect(view.turns).toHaveLength(3);
  const row = { id: made, fromTurn: 1, model: 'demo@2', reward: 3, failure: null };
  expect((await viewAttemptOf(viewsOf(), 'demo', ORIGIN)).replays).toEqual([row]);
});

test('a replay ends with the page that wanted it, and nothing of it is stored', async () => {
  const before = await allKeys();
  const page = new AbortController();
  engine.failWhen(() => {
    page.abort();
    return { hang: true };
  });
  await expect((await plan({}, {}, page.signal)).perform()).rejects.toThrow('the attempt was cancelled');
  expect(await allKeys()).toEqual(before);
});

test('the same checkpoint is asked once; a hosted model answers anew each time', async () => {
  const first = await (await plan()).perform();
  const executed = engine.executed.length;
  expect(await (await plan()).perform()).toEqual(first);
  expect(engine.executed.length).toBe(executed);
  const env = { OPENAI_BASE_URL: `${engine.url}/v1`, OPENAI_API_KEY: engine.key };
  const hosted = { model: 'openai/gpt-5', fromTurn: 2 };
  const ids = [await (await plan(hosted, env)).perform(), await (await plan(hosted, env)).perform()];
  expect(ids[1]!.made).toBe(`${ids[0]!.made}-2`);
  const { request } = engine.executed.at(-1)!;
  expect(Object.keys(request).toSorted()).toEqual(['max_completion_tokens', 'messages', 'model']);
  expect(await listReplays(store, 'demo', ORIGIN)).toHaveLength(3);
});

test('the same request to a hosted model, after a restart, gets the first replay', async () => {
  const env = { OPENAI_BASE_URL: `${engine.url}/v1`, OPENAI_API_KEY: engine.key };
  const request = { model: 'openai/gpt-5', fromTurn: 2, requestId: 'r-1' };
  const first = await (await plan(request, env)).perform();
  const executed = engine.executed.length;
  expect(await (await plan(request, env)).perform()).toEqual(first);
  expect(engine.executed.length).toBe(executed);
  const other = await (await plan({ ...request, requestId: 'r-2' }, env)).perform();
  expect(other.made).not.toBe(first.made);
});

test('an agent that asks something else before the turn is shown the difference, and nothing is stored', async () => {
  await writeFile(join(project, 'agents', 'toy.ts'), AGENT.replace("join(' ')", "join(', ')"));
  const planned = await plan({ fromTurn: 2 });
  await expect(planned.perform()).rejects.toThrow(
    /call 2 is not the recorded one: messages\[0\]\.content.*\n.*recorded: "s0 /,
  );
  expect(await listReplays(store, 'demo')).toEqual([]);
});

test.each([
  [{ fromTurn: 3 }, 'fromTurn must be a turn of the attempt 0.1.7.0, from 0 to 2, got 3'],
  [{ attempt: '0.1.9.0' }, 'the run demo has no attempt 0.1.9.0'],
  [{ attempt: 'replay.0.1.7.0.t1.0a1b2c3d' }, 'only a recorded attempt can be replayed'],
  [{ attempt: '../../x' }, 'the run demo has no attempt ../../x'],
  [{ model: 'demo@9' }, 'demo@9 is not committed'],
])('a replay that cannot be made says why: %j', async (request, says) => {
  await expect(plan(request)).rejects.toThrow(says);
});

test("an agent's file that is not found is asked for, and remembered", async () => {
  await rm(join(project, 'agents'), { recursive: true });
  await expect(plan({ run: 'demo' })).rejects.toThrow('name the file (agentFile)');
  await writeFile(join(project, 'agent.txt.ts'), AGENT.replace("'toy'", "'t' + 'oy'"));
  await plan({ agentFile: 'agent.txt.ts' });
  expect((await plan()).says).toContain('agent.txt.ts');
});

test('a file elsewhere is not run, unless it is the very code of the run', async () => {
  await rm(join(project, 'agents'), { recursive: true });
  const elsewhere = join(temporaryFolder(), 'agent.ts');
  await writeFile(elsewhere, `globalThis.wasRun = true;\n${AGENT}`);
  await expect(plan({ agentFile: elsewhere })).rejects.toThrow("the agent's file must be in the project");
  await symlink(elsewhere, join(project, 'link.ts'));
  await expect(plan({ agentFile: 'link.ts' })).rejects.toThrow("the agent's file must be in the project");
  expect(Object.hasOwn(globalThis, 'wasRun')).toBe(false);
});

test('verify reads replays, and finds one whose origin is another attempt by now', async () => {
  const { made } = await (await plan()).perform();
  const id = made.replace('replay.', '');
  const ofReplays = async () =>
    (await verifyRun(store, 'demo')).findings.problems.filter(({ object }) => object.includes('replays/'));
  expect(await ofReplays()).toEqual([]);
  const { record: replayed } = (await readReplay(store, 'demo', id))!;
  await rm(join(project, '.temper', 'store', rolloutsKey({ run: 'demo', branch: 0, step: 1, group: 7 })));
  await writeRecord(replayed);
  expect(await ofReplays()).toMatchObject([
    { finding: 'the attempt 0.1.7.0 that it was made of is not the recorded one' },
  ]);
});
