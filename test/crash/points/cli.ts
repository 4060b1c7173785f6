/** The command line with points: at its beginning and end, around the start of the run, at each look at its state. */
import { WorkflowClient } from '@temporalio/client';
import { nodeFileSystem } from '../../../store/bytes/file-system.ts';
import { isInBucket, openPoints, pass } from './reach.ts';

openPoints('cli');

const disk = { ...nodeFileSystem };
nodeFileSystem.readFile = async (file) => {
  const bytes = await disk.readFile(file);
  if (file.endsWith('state.json') && bytes !== null) pass('looks');
  return bytes;
};

if (isInBucket()) {
  const { wrapRequests } = await import('./s3-points.ts');
  wrapRequests(async (command, key, send) => {
    const answer = await send();
    if (command === 'GetObjectCommand' && key.endsWith('state.json')) pass('looks');
    return answer;
  });
}

const client = WorkflowClient.prototype;
const start = Reflect.get(client, 'start') as (...args: unknown[]) => Promise<unknown>;
Object.assign(client, {
  async start(this: WorkflowClient, ...args: unknown[]): Promise<unknown> {
    pass('start.before');
    const handle = await start.apply(this, args);
    pass('start.after');
    return handle;
  },
});

pass('begins');
const { main } = await import('../../../cli/main.ts');
process.exitCode = await main(process.argv.slice(2));
pass('ends');
// The product's own entry ends in the same way.
setTimeout(() => process.exit(), 2000).unref();
