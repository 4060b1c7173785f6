import { defaultPayloadConverter } from '@temporalio/common';
import { expect, test } from 'vitest';

import { temperAgent, temperPhase, temperReward, temperRun, temperStep } from '../../workflows/search-attributes.ts';
import { bed } from './bed.ts';

test('a run is found by its name, agent, step, reward and phase', async () => {
  await bed.play({}, async ({ handle, input }) => {
    const { reward } = await handle.result();
    const { typedSearchAttributes } = await handle.describe();
    const keys = [temperRun, temperAgent, temperStep, temperReward, temperPhase] as const;
    const found = keys.map((key) => typedSearchAttributes.get<typeof key.type>(key));
    expect(found).toEqual([input.config.run, 'fake', 3, reward, 'done']);
  });
});

test("Temporal's UI shows the step, the phase, the curve and what can be done", async () => {
  await bed.play({}, async ({ handle, input }) => {
    await handle.result();
    const { currentDetails } = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
    const { run } = input.config;
    expect(currentDetails).toContain(`### ${run}: completed, step 3 of 3`);
    expect(currentDetails).toContain('- **phase** done');
    expect(currentDetails).toContain('- **eval after step 3** reward 0.300 · win 0.300');
    expect(currentDetails).toMatch(/^\| 3 \| [\d.]+ \| 2 \| 0 \| 0 \| [\d.]+ \|$/m);
    expect(currentDetails).toContain(`\`temper report ${run}\``);
    expect(currentDetails).not.toContain('\n\n\n');
  });
});

test('every activity has a summary, a heartbeat and a bound', async () => {
  await bed.play({ config: { steps: 1 } }, async ({ handle, input }) => {
    await handle.result();
    const { events } = await handle.fetchHistory();
    const scheduled = (events ?? []).filter((event) => event.activityTaskScheduledEventAttributes);
    const summaries = scheduled.map(({ userMetadata }) =>
      userMetadata?.summary ? defaultPayloadConverter.fromPayload<string>(userMetadata.summary) : null,
    );
    expect(summaries).toEqual([
      'prepare',
      'step 0 · running',
      'step 0 · adapter',
      'step 0 · eval · 3 scenarios',
      'step 0 · running',
      expect.stringMatching(/^step 1 · group 0 · scenario [0-5]$/),
      expect.stringMatching(/^step 1 · group 1 · scenario [0-5]$/),
      'step 1 · verdict on 2 groups',
      'step 1 · 2 groups',
      'step 1 · checkpoint',
      'step 1 · eval · 3 scenarios',
      'step 1 · running',
      'step 1 · completed',
    ]);
    for (const { activityTaskScheduledEventAttributes: options } of scheduled) {
      expect(Number(options?.heartbeatTimeout?.seconds)).toBe(10);
      expect(Number(options?.startToCloseTimeout?.seconds)).toBeGreaterThan(0);
      expect(Object.values(input.queues)).toContain(options?.taskQueue?.name);
    }
  });
});
