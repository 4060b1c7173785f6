/** An attempt that a program plays, and the result that it reports. */
import type { Recorder } from '../recorder/recorder.ts';
import type { Program } from './program.ts';

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
export interface ToldResult {
  readonly text: string | null;
  /** Names the text in messages. */
  readonly where: string;
}
