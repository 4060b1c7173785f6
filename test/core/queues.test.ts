import { expect, test } from 'vitest';

import { rolloutQueue, runOfWorkflowId, runWorkflowId, nameOfScheduleId, scheduleId } from '../../core/queues.ts';

test('a workflow id addresses a run, and only such ids do', () => {
  expect(runOfWorkflowId(runWorkflowId('demo'))).toBe('demo');
  expect(runOfWorkflowId('train/project/model/3')).toBeNull();
});

test('agents of different stores have queues of their own', () => {
  expect(rolloutQueue('a', 'agent')).not.toBe(rolloutQueue('b', 'agent'));
});

test('a schedule is known by its id, other ids are none', () => {
  expect(nameOfScheduleId(scheduleId('nightly'))).toBe('nightly');
  expect(nameOfScheduleId('somebody-elses')).toBeNull();
});
