/** A run as workers leave it behind, planned by the real plans and written by the real encoders; its weights are made up. */
import type {
  Checkpoint,
  RolloutInput,
  RunConfig,
  SupervisedConfig,
  TrainInput,
} from '../../../core/contract/contract.ts';
import { sha256Hex } from '../../../core/text/hashes.ts';
import { EMPTY_LEDGER } from '../../../core/rules/costs.ts';
import { leagueAtStart } from '../../../core/plan/league.ts';
import { adapterOf } from '../../../core/names/policy-name.ts';
import { planEvaluation } from '../../../core/plan/evaluation.ts';
import {
  planInitialise,
  policiesAtStart,
  positionAt,
  storePosition,
  type RunPosition,
} from '../../../core/plan/step.ts';
import { chooseKnown, planJudging, planNext, planTopUp, planTraining, withPlayed } from '../../../core/plan/window.ts';
import { defaultRunConfig, type RunOptions } from '../../../core/rules/run-defaults.ts';
import { addToCurve } from '../../../store/records/runs/curve.ts';
import { summariseEval } from '../../../store/records/groups/eval-result.ts';
import type { StoredRollouts } from '../../../store/records/groups/group-files.ts';
import { judgeByAgent } from '../../../store/records/groups/group-result.ts';
import { encodeJson, encodeJsonLines } from '../../../store/bytes/json.ts';
import { planSupervised, positionAfter } from '../../../core/plan/supervised.ts';
import { isSupervisedStep } from '../../../core/rules/supervised.ts';
import * as layout from '../../../store/layout.ts';
import {
  decideGroup,
  publishStepVerdict,
  toStepVerdict,
  type DecidedGroup,
} from '../../../store/records/groups/step-verdict.ts';
import { publishPosition } from '../../../store/records/runs/positions.ts';
import { publishRun } from '../../../store/records/runs/publish-run.ts';
import { hashBytes } from '../../../store/bytes/sha256.ts';
import type { Store } from '../../../store/store.ts';
import { encodeRollouts, type AttemptRecord } from '../../../store/records/groups/trajectories.ts';
import { fixtureState, summary } from '../../cli/fixture-store.ts';
import { commit } from './made-commit.ts';

export interface MadeOptions {
  run?: string;
  steps?: number;
  seed?: number;
  /** Groups of this number in each step carry no signal, and are replaced. */
  still?: number;
  /** A step none of whose groups carries a signal. */
  empty?: number;
  /** Group 0 of this step was cut off in all of its attempts. */
  cut?: number;
  maxStaleness?: number;
  /** Metric by step; evaluated where there is one. */
  evals?: Readonly<Record<number, number>>;
  /** In the place of the model's own. */
  chatTemplate?: string;
  /** How many of the first steps train examples. */
  warmStart?: number;
  train?: RunOptions['train'];
  roles?: RunConfig['roles'];
  /** Open groups, and how a step is taken from them. */
  window?: { options: Partial<RunOptions>; take: TakeWindowStep };
  /** More of what manifests say of where it was trained. */
  platform?: Readonly<Record<string, string>>;
}

/** Plays groups without judging them, and commits what is trained. */
interface StepParts {
  play: (group: RolloutInput) => Promise<StoredRollouts>;
  commit: (training: TrainInput | null) => Promise<Checkpoint | null>;
}

export type TakeWindowStep = (
  store: Store,
  config: RunConfig,
  position: RunPosition,
  parts: StepParts,
) => Promise<RunPosition>;

const text = (content: string): Uint8Array => new TextEncoder().encode(content);

export const EXAMPLES = text(Array.from({ length: 9 }, (_, id) => `{"id":"line ${id}","messages":[]}\n`).join(''));

function madeSupervised(steps: number): SupervisedConfig {
  const sha256 = hashBytes(EXAMPLES);
  const dataset = { key: layout.blobKey(sha256), sha256, bytes: EXAMPLES.length };
  return { dataset, turns: 'all', overlong: 'mask', examples: 9, heldOut: 2, examplesPerStep: 3, steps };
}

function madeConfig(options: MadeOptions = {}): RunConfig {
  const { run = 'demo', steps = 3, seed = 1, maxStaleness = 0, chatTemplate, warmStart, train = {}, roles } = options;
  const supervised = warmStart === undefined ? {} : { supervised: madeSupervised(warmStart) };
  const rollout = chatTemplate === undefined ? {} : { chatTemplateSha256: hashBytes(text(chatTemplate)) };
  const config = {
    run,
    agent: 'toy',
    baseModel: 'pocket',
    steps,
    seed,
    maxStaleness,
    groupsPerStep: 2,
    groupSize: 2,
    rollout,
    train,
    ...supervised,
    ...(roles && { roles }),
    ...options.window?.options,
  };
  return defaultRunConfig(config);
}

export interface MadeRun {
  config: RunConfig;
  /** The position of the run after each step. */
  positions: RunPosition[];
}

export async function makeRun(store: Store, options: MadeOptions = {}): Promise<MadeRun> {
  const config = madeConfig(options);
  const { run } = config;
  const scenarios = await store.putBlob(
    encodeJsonLines(Array.from({ length: 12 }, (_, id) => ({ id: `s${id}`, scenario: { id: `s${id}` } }))),
  );
  await store.replace(layout.scenariosKey(run), await store.getBlob(scenarios));
  if (options.warmStart !== undefined) await store.putBlob(EXAMPLES);
  if (options.chatTemplate !== undefined) await store.putBlob(text(options.chatTemplate));
  const prepared = {
    scenarios,
    trainScenarios: 10,
    evalScenarios: 2,
    heldOut: false,
    agentCodeSha256: sha256Hex('code'),
  };
  await publishRun(store, { config, agentCodeSha256: prepared.agentCodeSha256 });
  await store.publish(layout.preparedKey(run), encodeJson(prepared));
  const checkpoint = await commit(store, config, null, {
    ...planInitialise(config, 0),
    step: 0,
    groups: [],
    learningRate: 0,
    train: null,
    platform: options.platform,
  });
  const policies = policiesAtStart(config, checkpoint);
  const began = { branch: 0, prepared, step: 0, checkpoint, policies, dealt: 0, emptySteps: 0 };
  let position = positionAt({ ...leagueAtStart(config, checkpoint), ...began });
  await evaluate(store, config, position, options);
  const positions = [position];
  for (let step = 1; step <= config.steps; step++) {
    position = await takeStep(store, config, position, options);
    await publishPosition(store, run, storePosition(position, EMPTY_LEDGER));
    positions.push(position);
    await evaluate(store, config, position, options);
  }
  const summaries = Array.from({ length: config.steps }, (_, index) => summary(index + 1, config.steps));
  await addToCurve(store, run, { branch: 0, step: config.steps }, summaries, () => undefined);
  const evals = { evalBefore: null, evalAfter: null, evals: [] };
  await store.replace(layout.stateKey(run), encodeJson({ ...fixtureState(run, config.steps), ...evals, agent: 'toy' }));
  return { config, positions };
}

/** A branch of some steps that begins after one of the run's. */
export async function makeBranch(
  store: Store,
  { config, positions }: MadeRun,
  branch: number,
  fromStep: number,
  steps: number,
) {
  const { parent: checkpoint, ...from } = positions[fromStep]!;
  let position = positionAt({ ...from, branch, checkpoint, policies: policiesAtStart(config, checkpoint) });
  for (let taken = 0; taken < steps; taken++) {
    position = await takeStep(store, config, position, {});
    await publishPosition(store, config.run, storePosition(position, EMPTY_LEDGER));
  }
}

/** A step as it is taken at its first try, or again. */
export async function takeStep(
  store: Store,
  config: RunConfig,
  position: RunPosition,
  options: MadeOptions,
): Promise<RunPosition> {
  if (isSupervisedStep(config, position.step + 1)) {
    const supervised = planSupervised(config, position);
    const made = await commit(store, config, supervised.parent, { ...supervised, platform: options.platform });
    return positionAfter(position, { checkpoint: made, metrics: {}, seconds: {}, found: false });
  }
  if (options.window !== undefined) {
    const commitStep = async (training: TrainInput | null) =>
      training && commit(store, config, training.parent, { ...training, platform: options.platform });
    return options.window.take(store, config, position, {
      play: (group) => playRollouts(store, group, options),
      commit: commitStep,
    });
  }
  let window = position;
  const decided: DecidedGroup[] = [];
  for (let round = 0; round <= config.replacementRounds; round++) {
    const dealt = planTopUp(config, window);
    const groups = await Promise.all(dealt.map((group) => playGroup(store, group, options)));
    const results = groups.map(({ result }) => result);
    window = withPlayed(window, dealt, results);
    decided.push(...groups);
  }
  const judging = planJudging(config, window);
  await publishStepVerdict(store, judging, toStepVerdict(judging.inputsSha256, decided));
  const chosen = chooseKnown(config, window);
  const training = planTraining(config, window, chosen);
  const { platform } = options;
  const checkpoint = training && (await commit(store, config, training.parent, { ...training, platform }));
  return planNext(config, window, chosen, checkpoint);
}

async function playGroup(store: Store, input: RolloutInput, options: MadeOptions): Promise<DecidedGroup> {
  const { rollouts, sha256 } = await playRollouts(store, input, options);
  const judged = judgeByAgent(rollouts, sha256, input);
  const verdict = await store.publish(layout.judgedKey(input), encodeJson(judged));
  return decideGroup(input, rollouts, judged, hashBytes(verdict.bytes));
}

async function playRollouts(
  store: Store,
  input: RolloutInput,
  { still, empty, cut }: MadeOptions,
): Promise<StoredRollouts> {
  const isStill = input.group === still || input.step === empty;
  const truncated = input.step === cut && input.group === 0;
  const { inputsSha256, branch, step, group, scenario, policy } = input;
  const attempts = Array.from({ length: input.attempts }, (_, attempt) => ({
    ...withRoles(madeAttempt(attempt, isStill ? 1 : attempt, policy.adapterSha256), input),
    truncated,
  }));
  const header = {
    schema: 1,
    inputsSha256,
    branch,
    step,
    group,
    scenarioId: `s${scenario}`,
    scenario,
    adapterSha256: policy.adapterSha256,
    attempts: attempts.length,
  } as const;
  const { bytes } = await store.publish(layout.rolloutsKey(input), await encodeRollouts({ header, attempts }));
  return { rollouts: { header, attempts }, sha256: hashBytes(bytes) };
}

async function evaluate(
  store: Store,
  config: RunConfig,
  position: RunPosition,
  { evals = {} }: MadeOptions,
): Promise<void> {
  const reward = evals[position.step];
  if (reward === undefined) return;
  const { inputsSha256, branch, step, policy, count, firstScenario, run } = planEvaluation(config, position);
  const { adapterSha256 } = policy;
  const attempts = Array.from({ length: count }, (_, attempt) => ({
    ...madeAttempt(attempt, reward, adapterSha256),
    scenario: firstScenario + attempt,
    scenarioId: `s${firstScenario + attempt}`,
  }));
  const header = { schema: 1, inputsSha256, branch, step, adapterSha256, attempts: count } as const;
  const place = { run, branch, step };
  const { bytes } = await store.publish(layout.evalRolloutsKey(place), await encodeRollouts({ header, attempts }));
  await store.publish(
    layout.evalKey(place),
    encodeJson({ schema: 1, inputsSha256, ...summariseEval(step, attempts, hashBytes(bytes)) }),
  );
}

function madeAttempt(attempt: number, reward: number, adapterSha256: string): AttemptRecord {
  const request = { messages: [{ role: 'user', content: 'n?' }], temperature: 1, max_tokens: 2 };
  const message = { role: 'assistant', content: String(attempt) };
  const tokens = { promptTokenIds: [1, 2], tokenIds: [3], logprobs: [-0.5] };
  const call = {
    key: sha256Hex('call'),
    occurrence: 0,
    label: null,
    request,
    message,
    finishReason: 'stop',
    ...tokens,
    adapterSha256,
  };
  const outcome = { status: 'ok', failure: null, reward, metrics: { solved: reward > 0 }, truncated: false } as const;
  return { attempt, ...outcome, logs: [], unclaimedAnswers: 0, calls: [call] };
}

/** Each role answers once, and earns as much as the attempt; one that is not trained earns nothing. */
function withRoles(attempt: AttemptRecord, { policy, roles, seats = {} }: RolloutInput): AttemptRecord {
  if (roles === undefined) return attempt;
  const trained = Object.entries(roles).map(([role, name]) => [role, { checkpoint: policy, policy: name }] as const);
  const calls = [...trained, ...Object.entries(seats)].map(([role, seat]) => {
    return { ...attempt.calls[0]!, role, adapterSha256: adapterOf(seat.checkpoint, seat.policy)! };
  });
  const rewards = [...trained.map(([role]) => [role, attempt.reward!]), ...Object.keys(seats).map((role) => [role, 0])];
  return { ...attempt, calls, roleRewards: Object.fromEntries(rewards) };
}
