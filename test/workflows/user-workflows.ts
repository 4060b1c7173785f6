/**
 * Workflows of a user, with a runner that does what that of `@temporalio/openai-agents` does: it takes the options of model
 * activities from the client's header, and passes the header to children and to what continues it.
 */
import {
  condition,
  continueAsNew,
  defaultPayloadConverter,
  defineSignal,
  executeChild,
  proxyActivities,
  setHandler,
  sleep,
  workflowInfo,
  type ActivityOptions,
  type Headers,
  type WorkflowInterceptors,
} from '@temporalio/workflow';

const CONFIG = '__openai_agents_config';
const headersByRun = new Map<string, Headers>();

export const interceptors = (): WorkflowInterceptors => ({
  inbound: [
    {
      execute(input, next) {
        headersByRun.set(workflowInfo().runId, input.headers);
        return next(input);
      },
    },
  ],
  outbound: [
    {
      startChildWorkflowExecution: (input, next) => next({ ...input, headers: own() }),
      continueAsNew: (input, next) => next({ ...input, headers: own() }),
    },
  ],
});

const own = (): Headers => headersByRun.get(workflowInfo().runId) ?? {};

interface Model {
  invokeModelActivity(input: object): Promise<{ output: Item[] }>;
}

interface Item {
  type: string;
  content?: { text: string }[];
  [member: string]: unknown;
}

const LOOK_UP = {
  type: 'function',
  name: 'lookUp',
  description: 'Looks an order up.',
  parameters: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
  strict: true,
};

async function ask(input: unknown, tools: object[] = []): Promise<Item[]> {
  const header = own()[CONFIG];
  const { modelParams } = defaultPayloadConverter.fromPayload<{ modelParams: ActivityOptions }>(header!);
  const request = {
    systemInstructions: 'You help.',
    input,
    tools,
    modelSettings: {},
    handoffs: [],
    outputType: 'text',
  };
  const { invokeModelActivity } = proxyActivities<Model>({ startToCloseTimeout: 60_000, ...modelParams });
  return (await invokeModelActivity({ modelName: 'gpt-5', request })).output;
}

async function say(text: string): Promise<string> {
  const [item] = await ask(text);
  return item?.content?.[0]?.text ?? '';
}

/** A turn with a tool, and one with its answer; then a person approves. */
export const approveSignal = defineSignal<[string]>('approve');
export async function support({ id }: { id: string }): Promise<{ answer: string; approvedBy: string }> {
  let approvedBy = '';
  setHandler(approveSignal, (who) => void (approvedBy = who));
  const asked = [{ role: 'user', content: `Refund ${id}` }];
  const [call] = await ask(asked, [LOOK_UP]);
  const result = { type: 'function_call_result', callId: call!['callId'], name: 'lookUp', output: 'paid' };
  const [answer] = await ask([...asked, call, result], [LOOK_UP]);
  await condition(() => approvedBy !== '');
  return { answer: answer?.content?.[0]?.text ?? '', approvedBy };
}

/** Identical requests at once, children with and without one, and a second execution. */
export async function tree({ round = 0 }: { round?: number }): Promise<string[]> {
  if (round === 1) return [await say('again')];
  const together = await Promise.all(['same', 'same', 'same', 'other'].map(say));
  const children = [await executeChild(leaf, { args: ['child'] }), await executeChild(leaf, { args: ['child'] })];
  const heard = [...together, ...children];
  if (heard.includes('')) return heard;
  await say(heard.join(' '));
  return continueAsNew<typeof tree>({ round: 1 });
}

export function leaf(text: string): Promise<string> {
  return say(text);
}

/** Never ends by itself. */
export async function stuck(): Promise<void> {
  await say('before');
  await sleep('30 days');
}

/** Activities of its own call the model by HTTP. */
export async function plain({ baseURL, apiKey }: { baseURL: string; apiKey: string }): Promise<string> {
  const { askByHttp } = proxyActivities<{ askByHttp(url: string, key: string, text: string): Promise<string> }>({
    startToCloseTimeout: 20_000,
    retry: { maximumAttempts: 1 },
  });
  const first = await askByHttp(baseURL, apiKey, 'first');
  return askByHttp(baseURL, apiKey, `after ${first}`);
}
