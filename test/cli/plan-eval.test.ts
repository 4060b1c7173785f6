/** Decisions of `temper eval` before anything is started: who plays, what, and under which settings. */
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { TemperError } from '../../core/contract/failures.ts';
import { evalCommand } from '../../cli/eval/command.ts';
import { planEval } from '../../cli/eval/plan-eval.ts';
import { loadAgent } from '../../cli/planning/load-agent.ts';
import type { Prepared, RunConfig } from '../../core/contract/contract.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { SUPERVISED_AGENT } from '../../core/rules/supervised.ts';
import { readScenarios } from '../../play/scenarios.ts';
import { encodeJson, encodeJsonLines } from '../../store/bytes/json.ts';
import { changesKey, manifestKey, preparedKey, runKey, stateKey } from '../../store/layout.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import { openAgentActivities } from '../../workers/worker/agent-activities.ts';
import { createOutputLogger } from '../../workers/worker/logs.ts';
import { call, NEVER_PAUSED } from '../activities/world.ts';
import { madeManifest } from '../store/records/made-manifest.ts';
import { write, writeAgent } from './agents.ts';
import { fixtureState, temporaryProject } from './fixture-store.ts';
import { contextOf } from './run-cli.ts';

const SHA = 'e'.repeat(64);

let project: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  await writeAgent(project, { scenarios: "[{ id: 'own-1' }, { id: 'own-2' }]" });
  store = await openStore(join(project, '.temper', 'store'));
});

test("a path of scenarios is relative to the agent's file: for the command line and for a worker, from wherever", async () => {
  const file = await writeAgent(join(project, 'deep'), { scenarios: "'./questions.jsonl'" });
  await write(join(project, 'deep', 'questions.jsonl'), '{"id":"q1"}\n{"id":"q2"}\n');
  const { agent } = await loadAgent('deep/agent.ts', project);
  expect(await readScenarios(agent.scenarios, 9)).toEqual([{ id: 'q1' }, { id: 'q2' }]);
  const engine = { url: 'http://127.0.0.1:9', key: 'none' };
  const settings = { store, engine, contact: { silenceMs: () => 0 }, pauses: NEVER_PAUSED };
  const worker = await openAgentActivities(file, settings, createOutputLogger('worker'));
  const { prepare } = worker.activities as { prepare: (input: { config: RunConfig }) => Promise<Prepared> };
  const config = defaultRunConfig({ run: 'filed', agent: 'guess', baseModel: 'pocket' });
  const prepared = await call(prepare, { config });
  expect(prepared).toMatchObject({ trainScenarios: 1, evalScenarios: 1 });
  await worker.close();
});

/** A run at step 3, which trained on some scenarios and held out others. */
async function writeRun(run: string, { agent = 'guess', train = ['t1'], held = ['h1', 'h2'], platform = {} } = {}) {
  const config = defaultRunConfig({ run, agent, baseModel: 'pocket', seed: 9, rollout: { temperature: 0.7 } });
  const lines = [...train, ...held].map((id) => ({ id, scenario: { id } }));
  const scenarios = await store.putBlob(encodeJsonLines(lines));
  return publishRun(config, { scenarios, trainScenarios: train.length, evalScenarios: held.length }, platform);
}

async function publishRun(
  config: RunConfig,
  split: Pick<Prepared, 'scenarios' | 'trainScenarios' | 'evalScenarios'>,
  platform = {},
): Promise<string> {
  const { run } = config;
  const file = { schema: 1, config, agentCodeSha256: SHA, versions: {}, parent: null };
  await store.publish(runKey(run), encodeJson(file));
  const manifest = madeManifest({ branch: 0, step: 3 }, { platform });
  const adapterSha256 = manifest.adapter.sha256;
  await store.replace(stateKey(run), encodeJson({ ...fixtureState(run, 3), adapterSha256 }));
  await store.publish(manifestKey({ run, branch: 0, step: 3 }), encodeJson(manifest));
  await store.publish(preparedKey(run), encodeJson({ ...split, heldOut: true, agentCodeSha256: SHA }));
  return adapterSha256;
}

function plan(models: string[], flags: string[] = [], env: NodeJS.ProcessEnv = {}) {
  const words = ['agent.ts', ...models.flatMap((model) => ['--model', model]), ...flags];
  return planEval(contextOf(evalCommand, project, words, env));
}

const idsOf = ({ scenarios }: { scenarios: readonly { id: string }[] }) => scenarios.map(({ id }) => id);

test('all models play what the first checkpoint’s run held out, each checkpoint as its own run did', async () => {
  await writeRun('demo');
  await writeRun('other');
  const set = { setting: 'temperature', from: 0.7, to: 0.5, branch: 0, step: 2, reason: null };
  await store.publish(changesKey('other', 1), encodeJson({ schema: 1, changes: [set] }));
  const planned = await plan(['openai/x', 'demo', 'other@3', 'pocket', 'pocket-tools'], [], { OPENAI_API_KEY: 'k' });
  expect(idsOf(planned)).toEqual(['h1', 'h2']);
  expect(planned.indexes).toEqual([1, 2]);
  const { players } = planned;
  expect(players.map(({ name }) => name)).toEqual(['openai/x', 'demo@3', 'other@3', 'pocket', 'pocket-tools']);
  expect(players.map(({ model }) => model)).toEqual(['x', 'demo@3', 'other@3', 'pocket', 'pocket-tools']);
  expect(players.map(({ rollout }) => rollout.temperature)).toEqual([0.7, 0.7, 0.5, 0.7, 0.7]);
  expect(players.map(({ place }) => place.step)).toEqual([0, 3, 3, 0, 0]);
  expect(players.map(({ place }) => place.seed)).toEqual([9, 9, 9, 9, 9]);
  expect(players.map(({ adapterSha256 }) => adapterSha256 === null)).toEqual([true, false, false, true, true]);
  expect(planned.notes).toEqual([]);
});

test('fewer scenarios than a run held out are a sample of them, with the numbers that they have in the run', async () => {
  const held = Array.from({ length: 40 }, (_, index) => `h${index}`);
  await writeRun('demo', { held });
  const planned = await plan(['demo'], ['--scenarios', '5']);
  expect(planned.of).toBe(40);
  expect(idsOf(planned)).toEqual(planned.indexes.map((index) => `h${index - 1}`));
  expect(idsOf(planned)).not.toEqual(held.slice(0, 5));
});

test('a run whose last steps trained nothing is played by the commit that it stands on', async () => {
  await writeRun('demo');
  const adapterSha256 = madeManifest({ branch: 0, step: 3 }).adapter.sha256;
  await store.replace(stateKey('demo'), encodeJson({ ...fixtureState('demo', 5), adapterSha256 }));
  const planned = await plan(['demo']);
  expect(planned.players).toMatchObject([{ name: 'demo@3', adapterSha256, place: { step: 3 } }]);
});

test('a checkpoint is played once, whichever names it has', async () => {
  await writeRun('demo');
  const planned = await plan(['demo@latest']);
  expect(planned.players).toMatchObject([{ name: 'demo@3', model: 'demo@3' }]);
  await expect(plan(['demo', 'demo@3'])).rejects.toThrow(
    '--model demo and --model demo@3 are both demo@3; pass one of them',
  );
});

test('a checkpoint that was trained on what another run held out is named', async () => {
  await writeRun('demo');
  await writeRun('other', { train: ['h1', 'h2', 'x'], held: ['t1'] });
  const planned = await plan(['demo', 'other']);
  expect(planned.notes).toEqual(['other@3 was trained on 2 of these 2 scenarios']);
});

test('a checkpoint of chats plays the agent’s own scenarios: its run was made for none', async () => {
  const dataset = await store.putBlob(encodeJsonLines(['line 1', 'line 2'].map((id) => ({ id, messages: [] }))));
  const supervised = { dataset, examples: 2, heldOut: 1, examplesPerStep: 1, turns: 'all', overlong: 'mask' } as const;
  const config = defaultRunConfig({ run: 'chats', agent: SUPERVISED_AGENT, baseModel: 'pocket', supervised });
  await publishRun(config, { scenarios: dataset, trainScenarios: 1, evalScenarios: 1 });
  const planned = await plan(['chats']);
  expect(planned.scenarios.map(({ id }) => id)).toEqual(['own-1', 'own-2']);
  expect(planned.notes).toEqual([]);
});

test('a checkpoint of another agent lends its settings, and not its scenarios', async () => {
  await writeRun('chess', { agent: 'chess' });
  const planned = await plan(['chess']);
  expect(idsOf(planned)).toEqual(['own-1', 'own-2']);
  expect(planned.players[0]?.rollout.temperature).toBe(0.7);
});

test('what a person says goes before what a run did', async () => {
  await writeRun('demo');
  const planned = await plan(
    ['demo'],
    ['--temperature', '0.2', '--seed', '4', '--scenarios', '1', '--price', 'demo=1/2'],
  );
  expect(idsOf(planned)).toHaveLength(1);
  expect(planned.players[0]).toMatchObject({
    rollout: { temperature: 0.2 },
    place: { seed: 4 },
    price: { prompt: 1, completion: 2 },
  });
});

test('a name that the project gives to a folder comes before a provider’s', async () => {
  await write(join(project, 'model', 'config.json'), '{}');
  await write(join(project, 'model', 'model.safetensors'), '');
  await write(join(project, 'model', 'chat_template.jinja'), '');
  await write(join(project, 'temporal.config.ts'), "export default { models: { 'openai/gpt-oss-20b': './model' } };\n");
  const planned = await plan(['openai/gpt-oss-20b']);
  expect(planned.players[0]).toMatchObject({ name: 'openai/gpt-oss-20b', hosted: null });
  expect(planned.models).toEqual({ 'openai/gpt-oss-20b': join(project, 'model') });
});

test('checkpoints are played on their base model as they were trained on it, and must agree', async () => {
  await writeRun('demo');
  await writeRun('packed', { platform: { quantization: 'nf4', dtype: 'bfloat16' } });
  await writeRun('rounded', { platform: { dtype: 'bfloat16' } });
  const baseOf = async (...models: string[]) => (await plan(models)).base;
  expect(await baseOf('pocket')).toBeNull();
  expect(await baseOf('pocket', 'demo')).toEqual({ checkpoint: 'demo@3', dtype: 'float32', loadIn4bit: false });
  expect(await baseOf('packed')).toEqual({ checkpoint: 'packed@3', dtype: 'bfloat16', loadIn4bit: true });
  const complaint = (other: string) =>
    `--model must name checkpoints whose base model was loaded in one way, because one engine plays them all, got demo@3 in float32 and ${other}; play them with two commands`;
  await expect(plan(['demo', 'rounded'])).rejects.toThrow(complaint('rounded@3 in bfloat16'));
  await expect(plan(['demo', 'packed'])).rejects.toThrow(complaint('packed@3 in bfloat16 with 4 bits per weight'));
  await expect(plan(['demo', 'packed'])).rejects.toBeInstanceOf(TemperError);
});
