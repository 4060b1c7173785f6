/** A store with one finished run in it, as a real one leaves it behind; the games are made up, but follow the rules. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EvalResult, Position, RunState, StepSummary } from '../../core/contract/contract.ts';
import { EMPTY_LEDGER } from '../../core/rules/costs.ts';
import { sha256Hex } from '../../core/text/hashes.ts';
import { NOT_STEERED } from '../../core/names/lineage.ts';
import { defaultRunConfig } from '../../core/rules/run-defaults.ts';
import { EMPTY_BOARD, hasWon, freeCells, place, randomOpponent, renderBoard } from '../../examples/tic-tac-toe/game.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import * as layout from '../../store/layout.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import type { Store } from '../../store/store.ts';
import { addToCurve } from '../../store/records/runs/curve.ts';
import {
  encodeRollouts,
  type AttemptRecord,
  type CallRecord,
  type Judged,
} from '../../store/records/groups/trajectories.ts';
import { attemptOf, callOf, user } from '../store/records/made-attempt.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const SHA = (digit: string) => digit.repeat(64);

/** An empty project: commands that are run in a folder of it find it. */
export function temporaryProject(): string {
  const project = temporaryFolder();
  writeFileSync(join(project, 'package.json'), '{}');
  return project;
}

export interface FixtureOptions {
  readonly run?: string;
  readonly agent?: string;
  readonly steps?: number;
  readonly state?: Partial<RunState>;
  /** Words of every model answer of the first group, besides its move. */
  readonly answer?: string;
  /** Words of the judge on every attempt; absent: the agent's own reward is the verdict. */
  readonly explanation?: string;
  /** Members of the verdicts on all groups, in the place of the agent's own. */
  readonly verdict?: Partial<Judged>;
  /** More numbers of the trainer in each step. */
  readonly train?: StepSummary['train'];
  /** The store; by default the project's own. */
  readonly storeUri?: string;
  readonly packing?: 'rows' | 'tree';
}

export async function writeFixtureRun(project: string, options: FixtureOptions = {}): Promise<Store> {
  const { run = 'demo', agent = 'tic-tac-toe', steps = 24, storeUri = join(project, '.temper', 'store') } = options;
  const store = await openStore(storeUri);
  const summaries = Array.from({ length: steps }, (_, index) => {
    const step = summary(index + 1, steps);
    return { ...step, train: { ...step.train, ...options.train } };
  });
  const train = options.packing === undefined ? {} : { packing: options.packing };
  const config = defaultRunConfig({ run, agent, baseModel: 'pocket', steps: Math.max(1, steps), train });
  await store.publish(
    layout.runKey(run),
    encodeJson({ schema: 1, config, agentCodeSha256: SHA('e'), versions: { temper: '0.1.0' }, parent: null }),
  );
  await store.replace(layout.stateKey(run), encodeJson({ ...fixtureState(run, steps), ...options.state }));
  await addToCurve(store, run, { branch: 0, step: steps }, summaries, () => undefined);
  for (const { step } of summaries) await writeStep(store, { run, branch: 0, step }, options);
  for (const step of [0, steps]) await writeEval(store, { run, branch: 0, step });
  return store;
}

export function fixtureState(run: string, steps: number): RunState {
  const [evalBefore, evalAfter] = [evaluation(0, 0.51, 0.09), evaluation(steps, 0.925, 0.01)];
  return {
    run,
    agent: 'tic-tac-toe',
    baseModel: 'pocket',
    branch: 0,
    state: 'completed',
    step: steps,
    steps,
    phase: 'done',
    waitingFor: null,
    reward: 0.88,
    evalBefore,
    evalAfter,
    evals: [evalBefore, evalAfter],
    wallSeconds: 151.5,
    adapterSha256: SHA('a'),
    failure: null,
    notes: [],
    ...NOT_STEERED,
  };
}

export function fixturePosition({ run, branch, step }: Pick<RunState, 'run' | 'branch' | 'step'>): Position {
  const hashes = { manifestSha256: sha256Hex(`manifest ${step}`), adapterSha256: sha256Hex(`adapter ${step}`) };
  const checkpoint = { run, branch, step, ...hashes };
  const counts = { dealt: 4 * step, open: [], emptySteps: 0, costs: EMPTY_LEDGER };
  return { branch, step, checkpoint, policies: [checkpoint], ...counts };
}

export function evaluation(step: number, winRate: number, illegalRate: number): EvalResult {
  const metrics = { drawRate: 0.1, illegalRate, moves: 3.6, winRate };
  return { step, attempts: 200, failed: 0, reward: winRate - 0.5 + illegalRate, metrics, rolloutsSha256: SHA('b') };
}

export function summary(step: number, steps: number): StepSummary {
  const winRate = 0.5 + (0.42 * step) / steps + 0.05 * Math.sin(step * 7);
  return {
    step,
    reward: winRate - 0.2,
    metrics: { drawRate: 0.1, illegalRate: 0.1 * (1 - step / steps), moves: 3.6 - step / steps, winRate },
    train: {
      entropy: 1.6 - step / steps,
      gradNorm: 0.2 + 0.1 * Math.cos(step),
      loss: 0.01 * Math.sin(step),
      logprobK3: 1e-12,
    },
    learningRate: 0.005 * (1 - (0.9 * step) / steps),
    groups: 8,
    replacedGroups: step % 9 === 0 ? 1 : 0,
    unused: step % 9 === 0 ? { 'no-variance': 1 } : {},
    failedAttempts: 0,
    attempts: 128,
    sampledTokens: 920,
    seconds: { rollout: 0.5, train: 0.25, step: 0.8 },
    adapterSha256: SHA('c'),
  };
}

async function writeStep(
  store: Store,
  position: layout.StepPlace,
  { answer, explanation, verdict }: Pick<FixtureOptions, 'answer' | 'explanation' | 'verdict'>,
): Promise<void> {
  for (let group = 0; group < 8; group++) {
    const attempts = Array.from({ length: 8 }, (_, attempt) =>
      game(group, attempt, position.step, group === 0 ? answer : undefined),
    );
    const header = {
      schema: 1,
      inputsSha256: SHA('d'),
      branch: 0,
      step: position.step,
      group,
      scenarioId: `game-${group}`,
      scenario: group,
      adapterSha256: SHA('a'),
      attempts: 8,
    } as const;
    await store.publish(layout.rolloutsKey({ ...position, group }), await encodeRollouts({ header, attempts }));
    const judged = {
      schema: 1,
      inputsSha256: SHA('d'),
      rolloutsSha256: SHA('b'),
      judge: 'agent',
      rewards: attempts.map(({ reward }) => reward),
      explanations: attempts.map(() => null),
      metrics: {},
      ...(explanation === undefined ? {} : judgedBy(attempts, explanation)),
      ...verdict,
    };
    await store.publish(layout.judgedKey({ ...position, group }), encodeJson(judged));
  }
}

function judgedBy(attempts: readonly AttemptRecord[], explanation: string) {
  const scores = attempts.map((_, index) => index / 8);
  const explanations = attempts.map(() => explanation);
  return { judge: 'openai/gpt-5-mini', rewards: scores, scores, explanations, verdict: SHA('9') };
}

async function writeEval(store: Store, position: layout.StepPlace): Promise<void> {
  const attempts = Array.from({ length: 40 }, (_, index) => ({
    ...game(1000 + index, index, position.step),
    scenario: 4000 + index,
    scenarioId: `game-${1_000_000 + index}`,
  }));
  const header = {
    schema: 1,
    inputsSha256: SHA('d'),
    branch: 0,
    step: position.step,
    adapterSha256: SHA('a'),
    attempts: 40,
  } as const;
  await store.publish(layout.evalRolloutsKey(position), await encodeRollouts({ header, attempts }));
}

/** x plays at random too, and names a cell that is taken one time in twelve. */
function game(scenario: number, attempt: number, step: number, answer?: string): AttemptRecord {
  const [x, o] = [randomOpponent(scenario * 1000 + attempt * 7 + step * 13), randomOpponent(scenario)];
  const calls: CallRecord[] = [];
  let board = EMPTY_BOARD;
  for (;;) {
    const isIllegal = calls.length > 0 && (attempt + calls.length + step) % 12 === 0;
    const move = isIllegal ? board.split('').findIndex((cell) => cell !== '.') : x(board);
    calls.push(call(renderBoard(board), answer ?? String(move + 1), calls.length));
    if (isIllegal) return attemptRecord(attempt, -1, calls, { illegal: true });
    board = place(board, move, 'x');
    if (hasWon(board, 'x')) return attemptRecord(attempt, 1, calls, { win: true });
    if (freeCells(board).length === 0) return attemptRecord(attempt, 0, calls, { draw: true });
    board = place(board, o(board), 'o');
    if (hasWon(board, 'o')) return attemptRecord(attempt, -1, calls, {});
  }
}

function call(board: string, answer: string, index: number): CallRecord {
  return callOf([user(board)], answer, {
    request: { messages: [user(board)], temperature: 1, max_tokens: 2 },
    promptTokenIds: board.split('').map((character) => character.codePointAt(0)!),
    tokenIds: [answer.codePointAt(0)!, 261],
    logprobs: [-0.3 - index * 0.4, -0.01],
  });
}

function attemptRecord(attempt: number, reward: number, calls: CallRecord[], outcome: Record<string, true>) {
  const metrics = { win: false, draw: false, illegal: false, ...outcome, moves: calls.length };
  return attemptOf(attempt, calls, { reward, metrics });
}
