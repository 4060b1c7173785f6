/** Payloads name no option that has its default, so that a worker of an older version takes a run that does not use it. */
import { isDeepStrictEqual } from 'node:util';

import type { WorkflowHandle } from '@temporalio/client';
import { expect, test } from 'vitest';
import type { z } from 'zod';

import {
  AllocateInput,
  CheckpointInput,
  ConcludeInput,
  EvaluateInput,
  InitialiseInput,
  JudgeGroupInput,
  JudgeInput,
  PrepareInput,
  RecordInput,
  RolloutInput,
  TrainInput,
} from '../../core/contract/contract.ts';
import { runWorkflowId } from '../../core/names/queues.ts';
import { bed } from './bed.ts';
import { STORE_ID } from './harness.ts';

const INPUTS: Record<string, z.ZodType> = {
  prepare: PrepareInput,
  initialise: InitialiseInput,
  rollout: RolloutInput,
  judgeGroup: JudgeGroupInput,
  judge: JudgeInput,
  train: TrainInput,
  evaluate: EvaluateInput,
  record: RecordInput,
  checkpoint: CheckpointInput,
  allocate: AllocateInput,
  conclude: ConcludeInput,
};

const ONE_BY_ONE = ['prepare', 'initialise', 'evaluate', 'rollout', 'judge', 'train', 'checkpoint', 'record'];

test.each([
  ['without a judge', {}, ONE_BY_ONE],
  ['with a judge', { judge: 'openai/gpt-5-mini' }, [...ONE_BY_ONE, 'judgeGroup']],
])('a run %s hands its activities no default', async (_, options, activities) => {
  const config = { ...options, steps: 1, replacementRounds: 0 };
  await bed.play({ config, fake: {} }, async ({ handle }) => {
    await handle.result();
    await expectNoDefaults(handle, activities);
  });
});

test('the firing of a schedule hands its activities no default', async () => {
  await bed.play({}, async ({ handle, client, input: { config, queues }, workflowQueue }) => {
    await handle.terminate('only its workers are needed');
    const schedule = `nightly-${config.run}`;
    const firing = await client.workflow.start('retrain', {
      workflowId: runWorkflowId(STORE_ID, schedule),
      taskQueue: workflowQueue,
      args: [{ schedule, config, from: null, storeId: STORE_ID, queues }],
    });
    await firing.result();
    await expectNoDefaults(firing, ['allocate', 'conclude']);
  });
});

async function expectNoDefaults(handle: Pick<WorkflowHandle, 'fetchHistory'>, activities: string[]): Promise<void> {
  const { events } = await handle.fetchHistory();
  const scheduled = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: each }) => each ?? []);
  const inputs = new Map(
    scheduled.map(({ activityType, input }) => [
      activityType?.name ?? '',
      JSON.parse(Buffer.from(input?.payloads?.[0]?.data ?? []).toString()) as object,
    ]),
  );
  expect([...inputs.keys()]).toEqual(expect.arrayContaining(activities));
  expect([...inputs].flatMap(([name, input]) => superfluous(name, input))).toEqual([]);
}

/** Members without which an input reads the same. */
function superfluous(activity: string, input: object): string[] {
  const schema = INPUTS[activity];
  if (schema === undefined) throw new Error(`no schema for the input of ${activity}`);
  const whole = schema.parse(input);
  const search = (value: unknown, path: string): string[] =>
    Object.entries(typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}).flatMap(
      ([name, member]: [string, unknown]) => {
        const holder = value as Record<string, unknown>;
        delete holder[name];
        const { data } = schema.safeParse(input);
        holder[name] = member;
        return [...(isDeepStrictEqual(data, whole) ? [`${path}.${name}`] : []), ...search(member, `${path}.${name}`)];
      },
    );
  return search(input, activity);
}
