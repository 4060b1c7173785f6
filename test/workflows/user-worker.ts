/** A worker of the user's: `user-worker.ts ADDRESS QUEUE BUNDLE`. Its activities are called by no workflow that it runs. */
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

const [address = '', taskQueue = '', codePath = ''] = process.argv.slice(2);
Runtime.install({ logger: new DefaultLogger('ERROR') });
const connection = await NativeConnection.connect({ address });
const worker = await Worker.create({ connection, taskQueue, workflowBundle: { codePath } });
await worker.run();
