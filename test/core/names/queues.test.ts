import { expect, test } from 'vitest';

import {
  nameOfScheduleId,
  rolloutQueue,
  runOfWorkflowId,
  runWorkflowId,
  scheduleId,
  storeQueue,
  trainWorkflowId,
} from '../../../core/names/queues.ts';

test('a workflow id addresses a run, and only such ids do', () => {
  expect(runOfWorkflowId(runWorkflowId('a-store', 'demo'))).toBe('demo');
  expect(runOfWorkflowId(trainWorkflowId('a-store', 'project', 'model', 3))).toBeNull();
  expect(runOfWorkflowId(scheduleId('a-store', 'demo'))).toBeNull();
});

test('what has one name in two stores has two addresses', () => {
  const addresses = (storeId: string) => [
    runWorkflowId(storeId, 'demo'),
    trainWorkflowId(storeId, 'project', 'model', 3),
    scheduleId(storeId, 'demo'),
    rolloutQueue(storeId, 'agent'),
    storeQueue(storeId, 'gpu'),
    storeQueue(storeId, 'temper'),
  ];
  expect(new Set([...addresses('a'), ...addresses('b')]).size).toBe(12);
});

test('a schedule is known by its id, those of other stores and other people are none', () => {
  expect(nameOfScheduleId('a', scheduleId('a', 'nightly'))).toBe('nightly');
  expect(nameOfScheduleId('b', scheduleId('a', 'nightly'))).toBeNull();
  expect(nameOfScheduleId('a', 'somebody-elses')).toBeNull();
});
