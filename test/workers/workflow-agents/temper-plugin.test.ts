import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';

import { interceptors } from '../../../workers/workflow-agents/route-activities.ts';
import { temperPlugin } from '../../../workers/workflow-agents/temper-plugin.ts';

const plugin = temperPlugin();
const routes = [{ activities: ['invokeModel'], options: { taskQueue: 'model', retry: { maximumInterval: 5 } } }];
const header = { metadata: {}, data: new TextEncoder().encode(JSON.stringify({ routes })) };
const same = <T>(input: T): T => input;
const activity = { activityType: 'invokeModel', options: { startToCloseTimeout: '1m', retry: {} }, headers: {} };

function enter(headers: Record<string, { data: Uint8Array }>) {
  const { inbound, outbound } = interceptors();
  inbound[0]!.execute({ headers }, same);
  return outbound[0]!;
}

test('a worker’s bundle gets the interceptor, beside those that it has', () => {
  const { interceptors: added } = plugin.configureWorker({
    workflowsPath: '/workflows',
    interceptors: { activity: [], workflowModules: ['/own'] },
  });
  expect(added).toEqual({ activity: [], workflowModules: ['/own', expect.stringMatching(/route-activities\.ts$/)] });
  expect(existsSync(added.workflowModules[1]!)).toBe(true);
  expect(plugin.configureBundler({ workflowsPath: '/workflows' })).toEqual({
    workflowsPath: '/workflows',
    workflowInterceptorModules: [added.workflowModules[1]],
  });
  const bundled = { workflowBundle: { code: '' } };
  expect(plugin.configureWorker(bundled)).toBe(bundled);
});

test('activities that the header names go where it says; others, and workflows without it, stay as they are', () => {
  const outbound = enter({ temper: header });
  expect(outbound.scheduleActivity(activity, same)).toEqual({
    ...activity,
    options: { startToCloseTimeout: '1m', taskQueue: 'model', retry: { maximumInterval: 5 } },
  });
  const other = { ...activity, activityType: 'getWeather' };
  expect(outbound.scheduleActivity(other, same)).toBe(other);
  expect(enter({}).scheduleActivity(activity, same)).toBe(activity);
});

test('children, and what a workflow continues as, get the header too', () => {
  const [routed, plain] = [enter({ temper: header }), enter({})];
  const started = { headers: { own: header } };
  expect(routed.startChildWorkflowExecution(started, same)).toEqual({ headers: { own: header, temper: header } });
  expect(routed.continueAsNew({ headers: {} }, same)).toEqual({ headers: { temper: header } });
  expect(plain.continueAsNew({ headers: {} }, same)).toEqual({ headers: {} });
});
