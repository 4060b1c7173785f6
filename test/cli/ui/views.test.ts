/** Views over HTTP: paths, parameters and refusals. */
import { expect, test } from 'vitest';
import type { ApiError } from '../../../views/api/requests.ts';
import { temporaryProject, writeFixtureRun } from '../fixture-store.ts';
import { serveUi } from './served-ui.ts';

test('names that lead elsewhere, and things that there are not, are not found', async () => {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 2 });
  const ui = await serveUi(project);
  const paths = [
    'runs/..%2f..%2f..%2fetc',
    'runs/..%2fx/attempts',
    'runs/demo%00/attempts',
    'runs/%E0%A4%A/attempts',
    'runs/demo/steps/..%2f1',
    'runs/demo/groups/..%2f..',
    'runs/demo/attempts/0.1.0.1%2f..',
    'runs/demo/attempts/0.1.0.99',
    'runs/__proto__/attempts',
    'runs/nobody/curve',
    'runs//curve',
    '__proto__',
    'nothing',
  ];
  for (const path of paths) {
    const { status, text } = await ui.ask('GET', `/api/${path}`);
    expect([path, status, (JSON.parse(text) as ApiError).error.code]).toEqual([path, 404, 'not_found']);
  }
});

test('a wrong parameter or method is refused by name', async () => {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 2 });
  const ui = await serveUi(project);
  const refusals = [
    ['GET', 'runs?limit=1', 422, 'runs takes no parameters, not limit; remove it'],
    ['GET', 'runs/demo/steps/1?branch=..', 422, 'branch must be a whole number'],
    ['GET', 'runs/demo/attempts?limit=501', 422, 'limit must be a whole number from 0 to 500'],
    ['POST', 'runs', 405, 'runs must be requested with GET'],
    ['GET', 'actions', 405, 'actions must be requested with POST'],
    ['DELETE', 'runs/demo', 405, 'runs/demo must be requested with GET'],
  ] as const;
  for (const [method, path, status, message] of refusals) {
    const answer = await ui.ask(method, `/api/${path}`);
    expect([path, answer.status]).toEqual([path, status]);
    expect((JSON.parse(answer.text) as ApiError).error.message).toContain(message);
  }
  const head = await ui.ask('HEAD', '/api/runs');
  expect([head.status, head.bytes.length]).toEqual([200, 0]);
});
