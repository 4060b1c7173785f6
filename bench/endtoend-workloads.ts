/** Workloads of `npm run bench -- endtoend`, by model. */
import { question, trainingProblems } from '../examples/multiplication/problems.ts';
import type { Prompt } from './endtoend-agent.ts';
import { LEFT_OUT } from './temper-run.ts';

export interface Workload {
  readonly model: string;
  readonly prompts: readonly Prompt[];
  readonly groups: number;
  readonly groupSize: number;
  /** Rows of a micro-batch of TRL's, about as many tokens as one of Temper's. */
  readonly batch: number;
  /** Those that count, and how many before them. */
  readonly steps: number;
  readonly leftOut: number;
  readonly learningRate: number;
  /** The mean reward that counts as learned; null: only seconds count. */
  readonly threshold: number | null;
}

const NUM_PROMPTS = 40;
const NONE: readonly string[] = [];

const random = { model: 'random-pocket', learningRate: 1e-5, leftOut: LEFT_OUT, threshold: null };
/** A first step's warm-up matters little where a step of TRL's takes minutes. */
const real = { model: 'smollm2', learningRate: 1e-5, groups: 8, groupSize: 8, steps: 1, leftOut: 1, threshold: null };

export const WORKLOADS: Readonly<Record<string, Readonly<Record<string, Workload>>>> = {
  pocket: {
    short: { ...random, prompts: plain(20, 32), groups: 16, groupSize: 8, batch: 128, steps: 10 },
    shared2400: { ...random, prompts: plain(2396, 32), groups: 8, groupSize: 8, batch: 8, steps: 3 },
    threshold: {
      model: 'pocket',
      prompts: trainingProblems.map((problem) => ({
        id: problem.id,
        text: question(problem),
        maxTokens: 4,
        answer: String(problem.left * problem.right),
        results: NONE,
      })),
      groups: 16,
      groupSize: 8,
      batch: 128,
      steps: 80,
      leftOut: LEFT_OUT,
      learningRate: 1e-3,
      threshold: 0.55,
    },
  },
  smollm2: {
    short: { ...real, prompts: tables(0, 0), batch: 64 },
    // With 16 rows of 550 tokens, TRL needs more than 24 GB.
    shared512: { ...real, prompts: tables(450, 0), groups: 4, leftOut: 0, batch: 4 },
    turns4: { ...real, prompts: tables(200, 3), groups: 4, leftOut: 0, batch: 4 },
  },
};

/** Texts of `bytes` bytes, each a token of the pocket model's, that differ from their first byte on. */
export function plain(bytes: number, maxTokens: number): Prompt[] {
  return Array.from({ length: NUM_PROMPTS }, (_, index) => {
    const text = Array.from({ length: bytes }, (__, at) => String.fromCodePoint(97 + ((index * 7 + at * at) % 26)));
    return { id: `text-${index}`, text: text.join(''), maxTokens, answer: null, results: NONE };
  });
}

/**
 * Prompts of `numDigits` digits, each a token of SmolLM2's, with a task whose answers are long; then tool results of
 * about 48 tokens with the template's.
 */
function tables(numDigits: number, numResults: number): Prompt[] {
  const task = 'Write a list of forty different numbers between 100 and 999, without any other words.';
  return Array.from({ length: NUM_PROMPTS }, (_, index) => ({
    id: `table-${index}`,
    text: `Table ${index}: ${digits(numDigits, index)}\n${task}`,
    maxTokens: 32,
    answer: null,
    results: Array.from(
      { length: numResults },
      (__, turn) => `Result: ${digits(24, index + turn)}\nGo on with the list.`,
    ),
  }));
}

function digits(count: number, seed: number): string {
  return Array.from({ length: count }, (_, at) => (seed * 7 + at * at + (at >> 3)) % 10).join('');
}
