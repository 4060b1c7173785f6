/** What Temporal's UI can filter and sort runs by. The local stack registers these names; `temper doctor` checks them. */
import { defineSearchAttributeKey } from '@temporalio/workflow';

export const temperRun = defineSearchAttributeKey('TemperRun', 'KEYWORD');
export const temperAgent = defineSearchAttributeKey('TemperAgent', 'KEYWORD');
export const temperStep = defineSearchAttributeKey('TemperStep', 'INT');
export const temperReward = defineSearchAttributeKey('TemperReward', 'DOUBLE');
export const temperPhase = defineSearchAttributeKey('TemperPhase', 'KEYWORD');

/** Name → type, in the words of `temporal operator search-attribute create` and `start-dev --search-attribute`. */
export const SEARCH_ATTRIBUTES = {
  TemperRun: 'Keyword',
  TemperAgent: 'Keyword',
  TemperStep: 'Int',
  TemperReward: 'Double',
  TemperPhase: 'Keyword',
} as const;
