/** Writes a store as large as one of weeks of training, by the store's own writers. Nothing was trained. */
import { randomFillSync } from 'node:crypto';
import type { EvalResult, StepSummary } from '../../core/contract/contract.ts';
import { sha256Hex } from '../../core/text/hashes.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { FileStore } from '../../store/bytes/file-store.ts';
import { nodeFileSystem } from '../../store/bytes/file-system.ts';
import { encodeJson, encodeJsonLines } from '../../store/bytes/json.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import * as layout from '../../store/layout.ts';
import { addToCurve } from '../../store/records/runs/curve.ts';
import { summariseEval } from '../../store/records/groups/eval-result.ts';
import type { Manifest } from '../../store/records/runs/manifest.ts';
import type { Store } from '../../store/store.ts';
import { encodeRollouts, type Judged } from '../../store/records/groups/trajectories.ts';
import { stateOf, summarise } from './made-summaries.ts';
import { adapterName, DEFAULTS, type Options, type PlayedGroup, type UiStoreOptions, type Writing } from './writing.ts';
import { makeAttempt, type MadeAttempt } from './made-attempts.ts';

const EVAL_ATTEMPTS = 20;
const STEP_MS = 60_000;

/** A bench does not need its store to survive a power cut. */
const fastFileSystem = {
  ...nodeFileSystem,
  createFile: (file: string, bytes: Uint8Array) => nodeFileSystem.createFile(file, bytes, false),
  syncFolder: () => Promise.resolve(),
};

export async function writeUiStore(given: UiStoreOptions): Promise<Store> {
  const options: Options = { ...DEFAULTS, ...given };
  const store = new FileStore(options.folder, fastFileSystem);
  await store.id();
  const { run, steps, groups, attempts, turns, words, bug } = options;
  const config = defaultRunConfig({
    run,
    agent: 'answers',
    baseModel: 'pocket',
    steps,
    groupsPerStep: groups,
    groupSize: Math.max(2, attempts),
  });
  const writing = { store, options, config, shape: { turns, words, bug } };
  await writeStart(writing);
  const summaries: StepSummary[] = [];
  const evals = [await writeEval(writing, 0)];
  let parent = await writeCommit(writing, 0, null, []);
  for (let step = 1; step <= steps; step++) {
    const played = await writeGroups(writing, step);
    const groupRefs = played.map(({ ref }) => ref);
    await writeVerdict(writing, step, played);
    parent = await writeCommit(writing, step, parent, groupRefs);
    summaries.push(summarise(writing, step, played));
    if (step % options.evalEvery === 0 || step === steps) evals.push(await writeEval(writing, step));
    if (summaries.length === 100 || step === steps)
      await addToCurve(store, run, { branch: 0, step }, summaries.splice(0), () => undefined);
    options.onStep(step);
  }
  await store.replace(layout.stateKey(run), encodeJson(stateOf(writing, evals)));
  return store;
}

async function writeStart({ store, config, options: { run } }: Writing): Promise<void> {
  const scenarios = encodeJsonLines(
    Array.from({ length: 220 }, (_, index) => ({ id: `q-${index}`, scenario: { question: `number ${index}` } })),
  );
  const prepared = {
    scenarios: await store.putBlob(scenarios),
    trainScenarios: 200,
    evalScenarios: EVAL_ATTEMPTS,
    heldOut: false,
    agentCodeSha256: sha256Hex('agent'),
  };
  await store.publish(layout.preparedKey(run), encodeJson(prepared));
  await store.replace(layout.scenariosKey(run), scenarios);
  const file = { schema: 1, config, agentCodeSha256: sha256Hex('agent'), versions: { temper: '0.1.0' }, parent: null };
  await store.publish(layout.runKey(run), encodeJson(file));
}

function writeGroups(writing: Writing, step: number): Promise<PlayedGroup[]> {
  return Promise.all(Array.from({ length: writing.options.groups }, (_, group) => writeGroup(writing, step, group)));
}

async function writeGroup(writing: Writing, step: number, group: number): Promise<PlayedGroup> {
  const { store, options } = writing;
  const place = { run: options.run, branch: 0, step, group };
  const scenario = (step * 7 + group) % 200;
  const inputsSha256 = sha256Hex(`inputs ${step} ${group}`);
  const made = Array.from({ length: options.attempts }, (_, attempt) =>
    makeOne(writing, { ...place, scenario, attempt }),
  );
  const rollouts = await encodeRollouts({
    header: {
      schema: 1,
      inputsSha256,
      branch: 0,
      step,
      group,
      scenarioId: `q-${scenario}`,
      scenario,
      adapterSha256: adapterName(step - 1),
      attempts: made.length,
    },
    attempts: made.map(({ record }) => record),
  });
  await store.publish(layout.rolloutsKey(place), rollouts);
  const rewards = made.map(({ record }) => record.reward);
  const judged: Judged = {
    schema: 1,
    inputsSha256,
    rolloutsSha256: hashBytes(rollouts),
    judge: 'rewardGroup',
    rewards,
    namedRewards: made.map(({ record, named }) => (record.status === 'ok' ? named : null)),
    explanations: made.map(() => null),
    metrics: {},
  };
  const verdict = encodeJson(judged);
  await store.publish(layout.judgedKey(place), verdict);
  await store.replace(layout.groupTimesKey(place), encodeJson(timesOf(writing, step, made)));
  const known = rewards.filter((reward) => reward !== null);
  return {
    ref: { group, rolloutsSha256: hashBytes(rollouts), judgedSha256: hashBytes(verdict) },
    made,
    rewards,
    hasVariance: known.length >= 2 && new Set(known).size > 1,
  };
}

function makeOne(
  { options: { steps }, shape }: Writing,
  { step, group, scenario, attempt }: { step: number; group: number; scenario: number; attempt: number },
): MadeAttempt {
  const seat = {
    seed: step * 100_003 + group * 1009 + attempt,
    attempt,
    skill: step / steps,
    scenarioId: `q-${scenario}`,
    adapterSha256: adapterName(Math.max(0, step - 1)),
  };
  return makeAttempt(seat, shape);
}

function committedAt({ options: { endsAt, steps } }: Writing, step: number): number {
  return endsAt - (steps - step) * STEP_MS;
}

function timesOf(writing: Writing, step: number, made: readonly MadeAttempt[]): object {
  const startedAt = committedAt(writing, step - 1) + 1000;
  const attemptTimes = made.map(({ record: { calls, attempt } }) => {
    const each = calls.map((_, index) => [startedAt + index * 1500 + attempt * 7, startedAt + index * 1500 + 1200]);
    return [attempt, { startedAt, endedAt: each.at(-1)?.[1] ?? startedAt, calls: each }] as const;
  });
  const seconds = 31;
  return {
    seconds,
    startedAt,
    endedAt: startedAt + seconds * 1000,
    attemptTimes: Object.fromEntries(attemptTimes),
    host: 'worker-1',
    pid: 7,
    activityAttempt: 1,
  };
}

async function writeVerdict(
  { store, options: { run } }: Writing,
  step: number,
  played: readonly PlayedGroup[],
): Promise<void> {
  const groups = played.map(({ ref, rewards, hasVariance }) => ({
    ...ref,
    use: hasVariance ? 'trained' : 'no-variance',
    rewards,
  }));
  const verdict = { schema: 1, inputsSha256: sha256Hex(`verdict ${step}`), groups };
  await store.publish(layout.stepVerdictKey({ run, branch: 0, step }), encodeJson(verdict));
}

async function writeCommit(
  writing: Writing,
  step: number,
  parent: string | null,
  groups: Manifest['groups'],
): Promise<string> {
  const { store, config, options } = writing;
  const place = { run: options.run, branch: 0, step };
  const blob = (bytes: number) => store.putBlob(randomFillSync(new Uint8Array(bytes)));
  const manifest: Manifest = {
    schema: 1,
    branch: 0,
    step,
    parent: parent === null ? null : { step: step - 1, manifestSha256: parent },
    inputsSha256: sha256Hex(`train ${step}`),
    baseModel: config.baseModel,
    baseModelSha256: sha256Hex('pocket'),
    adapter: await blob(options.blobBytes),
    adapterConfig: await store.putBlob(encodeJson({ r: 16, lora_alpha: 32 })),
    optimizer: await blob(2 * options.blobBytes),
    groups,
    learningRate: step === 0 ? 0 : config.learningRate,
    metrics: {},
    platform: { torch: '2.13.0' },
    seed: 1,
    train: step === 0 ? null : config.train,
  };
  const bytes = encodeJson(manifest);
  await store.publish(layout.manifestKey(place), bytes);
  const times = { committedAt: new Date(committedAt(writing, step)).toISOString(), host: 'gpu-1', pid: 9, attempt: 1 };
  await store.replace(
    layout.manifestTimesKey(place),
    encodeJson({ ...times, manifestSha256: hashBytes(bytes), seconds: { train: 12, commit: 0.2 } }),
  );
  return hashBytes(bytes);
}

async function writeEval(writing: Writing, step: number): Promise<EvalResult> {
  const { store, options } = writing;
  const place = { run: options.run, branch: 0, step };
  const made = Array.from({ length: EVAL_ATTEMPTS }, (_, attempt) =>
    makeOne(writing, { ...place, group: 999, scenario: 200 + attempt, attempt }),
  );
  const attempts = made.map(({ record }, index) => ({
    ...record,
    scenario: 200 + index,
    scenarioId: `q-${200 + index}`,
  }));
  const inputsSha256 = sha256Hex(`eval ${step}`);
  const header = { schema: 1, inputsSha256, branch: 0, step, adapterSha256: adapterName(step), attempts: 20 } as const;
  const bytes = await encodeRollouts({ header, attempts });
  await store.publish(layout.evalRolloutsKey(place), bytes);
  const result = summariseEval(step, attempts, hashBytes(bytes));
  await store.publish(layout.evalKey(place), encodeJson({ schema: 1, ...result }));
  await store.replace(layout.evalTimesKey(place), encodeJson(timesOf(writing, step + 1, made)));
  return result;
}
