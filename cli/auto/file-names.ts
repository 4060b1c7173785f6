/** Files of a folder of `temper auto`. */
import type { Stage } from './stages.ts';

export const TRAIN_FILE = 'scenarios.jsonl';
export const HELD_OUT_FILE = 'scenarios.held-out.jsonl';
export const AGENT_FILE = 'agent.ts';
/** Samples and their scores, by which the rubric was checked. */
export const RUBRIC_FILE = 'rubric-check.json';
export const EVALUATION_FILE = 'evaluation.json';
/** AutoSettings, and the stages that are done. */
export const STATE_FILE = 'auto.json';

/** Files that a stage writes; those of a person are never written again. */
export const OUTPUTS: Readonly<Record<Stage, readonly string[]>> = {
  scenarios: [TRAIN_FILE, HELD_OUT_FILE],
  agent: [AGENT_FILE],
  rubric: [RUBRIC_FILE],
  run: [],
  evaluation: [EVALUATION_FILE],
  report: [],
};
