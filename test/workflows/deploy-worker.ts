/**
 * A worker of deployments: `deploy-worker.ts ADDRESS QUEUE BUNDLE STORE PROOF`. Keys and addresses of targets are in its
 * environment. The proof asks the address PROOF.
 */
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

import { createDeployActivities } from '../../activities/deploy.ts';
import { outboundQueue } from '../../core/names/queues.ts';
import { openStore } from '../../store/bytes/open-store.ts';

const [address = '', taskQueue = '', codePath = '', storeUri = '', proof = ''] = process.argv.slice(2);
const log = (level: string) => (fields: object, message: string) =>
  console.error(level, message, JSON.stringify(fields));
Runtime.install({
  logger: new DefaultLogger('WARN', ({ level, message, meta }) => console.error(level, message, meta)),
});
const connection = await NativeConnection.connect({ address });
const store = await openStore(storeUri);
const activities = createDeployActivities({
  store,
  logger: { info: log('INFO'), warn: log('WARN') },
  env: process.env,
  pauses: { longestPauseMs: () => 0 },
  pollMs: 10,
  writeGguf: () => Promise.reject(new Error('no target of this test needs a GGUF file')),
  async prove({ deployment, fetch, signal }) {
    await fetch(`${proof}/proof/${deployment.id}`, { method: 'POST', signal });
    return { verdict: 'matches', detail: '8 of 8 answers are the same', prompts: 8, measured: {} };
  },
});
const workers = [
  await Worker.create({ connection, taskQueue, workflowBundle: { codePath } }),
  await Worker.create({ connection, taskQueue: outboundQueue(await store.id()), activities }),
];
await Promise.all(workers.map((worker) => worker.run()));
