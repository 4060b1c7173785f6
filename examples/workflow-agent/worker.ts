/** The production worker of the assistant, and beside it a sandbox, in which nothing is sent. */
import { fileURLToPath } from 'node:url';
import { OpenAIProvider } from '@openai/agents-openai';
import { OpenAIAgentsPlugin } from '@temporalio/openai-agents';
import { NativeConnection, Worker } from '@temporalio/worker';
import { temperPlugin } from 'temper-rl/temporal';
import * as activities from './activities.ts';

const connection = await NativeConnection.connect({ address: process.env['TEMPORAL_ADDRESS'] ?? '127.0.0.1:7233' });
const worker = await Worker.create({
  connection,
  taskQueue: 'mail',
  workflowsPath: fileURLToPath(new URL('workflows.ts', import.meta.url)),
  activities,
  // `temperPlugin` sends activities to the sandbox, and only in workflows that Temper has started.
  plugins: [new OpenAIAgentsPlugin({ modelProvider: new OpenAIProvider({ apiKey: 'of production' }) }), temperPlugin()],
  // The Agents SDK's modules load parts of it later, which a workflow cannot.
  bundlerOptions: {
    webpackConfigHook: (config) => ({
      ...config,
      resolve: { ...config.resolve, conditionNames: ['require', 'browser', 'default'] },
    }),
  },
});
const sandbox = await Worker.create({
  connection,
  taskQueue: 'mail-sandbox',
  activities: { send: async () => undefined },
});
await Promise.all([worker.run(), sandbox.run()]);
await connection.close();
