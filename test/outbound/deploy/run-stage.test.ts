import { expect, test } from 'vitest';

import { runStage } from '../../../outbound/deploy/run-stage.ts';
import { readDeployment } from '../../../store/records/production/deployments.ts';
import { temporaryStore } from '../../temporary-folder.ts';
import { addDeployment, KEYS, MATCHES } from './made-deployment.ts';

test('a secret that an error repeats, whatever it opens, is neither thrown nor recorded', async () => {
  const store = temporaryStore();
  const deployment = await addDeployment(store, { target: 'huggingface', options: { repo: 'me/demo', public: false } });
  const password = 'canary-of-the-proxy';
  const stage = {
    store,
    deployment,
    stage: 'repository',
    env: { ...KEYS, PROXY_PASSWORD: password },
    fetch: () => Promise.reject(new Error(`http://me:${password}@proxy refused it`)),
    signal: new AbortController().signal,
    prove: () => Promise.resolve(MATCHES),
    writeGguf: () => Promise.reject(new Error('unused')),
    checkFresh: () => undefined,
  };
  const failure = await runStage(stage).catch((error: unknown) => error);
  expect(failure).toMatchObject({ type: 'TargetUnavailable', message: expect.stringContaining('me:[key]@proxy') });
  const recorded = JSON.stringify(await readDeployment(store, 'demo', deployment.id));
  expect(recorded).toContain('me:[key]@proxy');
  expect(`${recorded} ${(failure as Error).stack}`).not.toContain(password);
});
