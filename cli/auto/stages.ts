/** Stages of `temper auto`, in their order. Imports nothing, because help shows the list. */
export const STAGES = ['scenarios', 'agent', 'rubric', 'run', 'evaluation', 'report'] as const;

export type Stage = (typeof STAGES)[number];

/** Whether a stage comes before another one, or is it. */
export function isUpTo(stage: Stage, last: Stage): boolean {
  return STAGES.indexOf(stage) <= STAGES.indexOf(last);
}
