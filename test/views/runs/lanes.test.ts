import { expect, test } from 'vitest';

import { encodeJson } from '../../../store/bytes/json.ts';
import * as layout from '../../../store/layout.ts';
import { addToCurve } from '../../../store/records/runs/curve.ts';
import type { Store } from '../../../store/store.ts';
import type { LaneSpan, LanesView } from '../../../views/api/run-views.ts';
import { NotFound } from '../../../views/context/context.ts';
import { viewLanes } from '../../../views/runs/lanes.ts';
import { fixtureState, summary, writeFixtureRun } from '../../cli/fixture-store.ts';
import { contextOf } from '../context.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const START = Date.UTC(2026, 10, 1, 10);
const at = (seconds: number) => new Date(START + seconds * 1000).toISOString();

/** Each step is played for 8 s by two hosts, waits 1 s for the device and is trained for 3 s. */
async function timedRun(steps: number): Promise<Store> {
  const store = await writeFixtureRun(temporaryFolder(), { steps });
  for (let step = 1; step <= steps; step++) {
    const place = { run: 'demo', branch: 0, step };
    const startedAt = START + step * 20_000;
    for (const group of [0, 1]) {
      const times = { startedAt, endedAt: startedAt + 8000, host: `host-${group}`, activityAttempt: group + 1 };
      await store.replace(layout.groupTimesKey({ ...place, group }), encodeJson(times));
    }
    const committedAt = new Date(startedAt + 12_000).toISOString();
    const seconds = { wait: 1, load: 0.5, train: 2, commit: 0.5 };
    await store.publish(layout.manifestTimesKey(place), encodeJson({ committedAt, seconds, host: 'gpu', attempt: 1 }));
  }
  return store;
}

const spansOf = ({ lanes }: LanesView, name: string): readonly LaneSpan[] =>
  lanes.find((lane) => lane.name === name)?.spans ?? [];

test('the store tells when groups were played and steps were trained, by whom, and at which attempt', async () => {
  const view = await viewLanes(contextOf(await timedRun(2)), 'demo', new URLSearchParams());
  expect(spansOf(view, 'rollout').map(({ step, group, host, attempt }) => [step, group, host, attempt])).toEqual([
    [1, 0, 'host-0', 1],
    [1, 1, 'host-1', 2],
    [2, 0, 'host-0', 1],
    [2, 1, 'host-1', 2],
  ]);
  expect(spansOf(view, 'train').slice(0, 2)).toMatchObject([
    { kind: 'wait', startedAt: at(28), endedAt: at(29) },
    { kind: 'work', startedAt: at(29), endedAt: at(32), host: 'gpu', branch: 0, step: 1 },
  ]);
});

test('the newest twenty steps are shown, or those that are named', async () => {
  const context = contextOf(await timedRun(24));
  const stepsIn = async (query: Record<string, string>) => {
    const spans = spansOf(await viewLanes(context, 'demo', new URLSearchParams(query)), 'rollout');
    return [...new Set(spans.map(({ step }) => step))];
  };
  expect(await stepsIn({})).toEqual(Array.from({ length: 20 }, (_, index) => index + 5));
  expect(await stepsIn({ from: '3', to: '4' })).toEqual([3, 4]);
  await expect(stepsIn({ from: 'x' })).rejects.toThrow('from must be');
});

test('a group that waited for rewards shows it from its last attempt to the decision', async () => {
  const store = await timedRun(1);
  const row = { schema: 1, kind: 'closed', reason: 'complete', at: at(100) };
  await store.publish(layout.givenKey({ run: 'demo', branch: 0, step: 1, group: 1 }, 0), encodeJson(row));
  const view = await viewLanes(contextOf(store), 'demo', new URLSearchParams());
  expect(spansOf(view, 'wait')).toMatchObject([{ group: 1, kind: 'wait', startedAt: at(28), endedAt: at(100) }]);
});

test('the store tells how long groups were judged, and since when a run is paused', async () => {
  const store = await timedRun(2);
  const judged = { ...summary(2, 2), seconds: { rollout: 8, judge: 2.5 } };
  await addToCurve(store, 'demo', { branch: 0, step: 2 }, [judged], () => undefined);
  const pause = { since: at(70), reason: 'the budget of $1 is used up' };
  await store.replace('runs/demo/state.json', encodeJson({ ...fixtureState('demo', 2), state: 'paused', pause }));
  const view = await viewLanes(contextOf(store), 'demo', new URLSearchParams());
  expect(spansOf(view, 'judge')).toMatchObject([{ step: 2, startedAt: at(48), endedAt: at(50.5), kind: 'work' }]);
  expect(spansOf(view, 'wait')).toMatchObject([{ step: null, startedAt: at(70), endedAt: null, kind: 'pause' }]);
  expect(spansOf(view, 'wait')[0]!.label).toContain('the budget of $1 is used up');
});

test('a run that there is not has no lanes', async () => {
  await expect(viewLanes(contextOf(await timedRun(1)), 'none', new URLSearchParams())).rejects.toBeInstanceOf(NotFound);
});
