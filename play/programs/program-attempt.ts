/** What a program plays, and what it says of it. */
import type { Recorder } from '../recorder/recorder.ts';
import type { Program } from './program.ts';

export interface ProgramAttempt {
  readonly program: Program;
  readonly scenario: object;
  readonly recorder: Recorder;
  readonly model: string;
  readonly temperature: number;
  /** Of what is random in the program. */
  readonly seed: number;
  /** Of the agent's file. */
  readonly folder: string;
  /** Where a judge alone gives the rewards. */
  readonly mayLackReward: boolean;
  readonly log: (line: string) => void;
  /** How often it was ended from outside at one place, this time included: over all of its repetitions. */
  readonly countDeath: (place: string) => number;
}

/** What a program said besides what it posted: the text of a result, or null. */
export interface ToldResult {
  readonly text: string | null;
  /** Names the text in messages. */
  readonly where: string;
}
