/**
 * A program that plays attempts: a command in any language, which reaches the model through the gateway. It is data on
 * the function that an agent has for a rollout, so that who plays the agent can read it.
 */
import { TemperError } from '../../core/contract/failures.ts';
import type { Metrics } from '../../core/numbers/statistics.ts';
import type { Recorder } from '../recorder/recorder.ts';

/** A request in the terms of chat completions, whatever the program's client speaks. */
export interface ProgramRequest {
  messages: ProgramMessage[];
  [parameter: string]: unknown;
}

interface ProgramMessage {
  role: string;
  content?: unknown;
  [member: string]: unknown;
}

export type ResultPlace = 'any' | 'stdout';

export type Rewrite = (request: ProgramRequest) => ProgramRequest;

export interface Program {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Beside those that `argv` names: part of the agent's code. */
  readonly files: readonly string[];
  /** `stdout`: its reward is its last line alone; what holds the attempt's key posts none and writes none. */
  readonly result: ResultPlace;
  /** How many processes run at once in one worker; null: as many as there are processors. */
  readonly concurrency: number | null;
  /** Changes what the program asks, before anybody reads it: the same request must have the same text again. */
  readonly rewrite: Rewrite | null;
}

/** Registered globally: an agent file may load another copy of this module than the worker that plays it. */
export const PROGRAM = Symbol.for('temper.program');

/** Same form as a rollout's result. */
export type ProgramResult =
  | number
  | { reward?: number; rewards?: Readonly<Record<string, unknown>>; metrics?: Readonly<Metrics> };

export type PlayProgram = (program: Program, scenario: object) => Promise<ProgramResult>;

/** Null for an agent whose rollout is code of its file. */
export function agentProgram({ rollout }: { readonly rollout: unknown }): Program | null {
  return (rollout as { readonly [PROGRAM]?: Program } | undefined)?.[PROGRAM] ?? null;
}

const SHOWN_CHARACTERS = 80;

/** Short form for messages. */
export function describeProgram(program: Program): string {
  const line = program.argv.join(' ').replaceAll(/\s+/g, ' ').trim();
  return line.length <= SHOWN_CHARACTERS ? line : `${line.slice(0, SHOWN_CHARACTERS)}…`;
}

/** The program was killed from outside: the attempt is discarded, unless that happens again and again. */
export class ProgramKilled extends TemperError {
  constructor(program: Program, signal: string) {
    super(
      'ProgramFailed',
      `${describeProgram(program)} was ended by ${signal} from outside; the attempt is played again`,
    );
    this.signal = signal;
  }

  readonly signal: string;
}

/** A mistake of the program: its attempt has failed, as data. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError';
}

/** An attempt that a program plays, and the result that it reports. */
export interface ProgramAttempt {
  readonly program: Program;
  readonly scenario: object;
  /** Values of the agent's resources; null if it has none. */
  readonly resources: object | null;
  readonly recorder: Recorder;
  readonly model: string;
  readonly temperature: number;
  /** Seed for randomness in the program. */
  readonly seed: number;
  /** Folder of the agent's file. */
  readonly folder: string;
  /** True if a judge alone gives the rewards. */
  readonly mayLackReward: boolean;
  /** True if others than the program reward attempts: a judge, people, or the agent's `rewardGroup`. */
  readonly isGraded: boolean;
  readonly log: (line: string) => void;
  /** How often it was ended from outside at one place, this time included: over all of its repetitions. */
  readonly countDeath: (place: string) => number;
}

/** A result that was not posted: its text, or null. */
export interface ProgramText {
  readonly text: string | null;
  /** Names the text in messages. */
  readonly where: string;
}
