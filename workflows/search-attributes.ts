/** Search attributes, by which Temporal's UI filters and sorts runs: typed keys for `upsertSearchAttributes` and clients. */
export const temperRun = { name: 'TemperRun', type: 'KEYWORD' } as const;
export const temperAgent = { name: 'TemperAgent', type: 'KEYWORD' } as const;
export const temperStep = { name: 'TemperStep', type: 'INT' } as const;
export const temperReward = { name: 'TemperReward', type: 'DOUBLE' } as const;
export const temperPhase = { name: 'TemperPhase', type: 'KEYWORD' } as const;
export const temperAwaited = { name: 'TemperAwaited', type: 'INT' } as const;

/**
 * Name → type, in the words of `temporal operator search-attribute create` and `start-dev --search-attribute`. A server
 * must know them before a run starts: an unknown one fails the workflow's task, and the run waits.
 */
export const SEARCH_ATTRIBUTES = {
  TemperRun: 'Keyword',
  TemperAgent: 'Keyword',
  TemperStep: 'Int',
  TemperReward: 'Double',
  TemperPhase: 'Keyword',
  TemperAwaited: 'Int',
} as const;
