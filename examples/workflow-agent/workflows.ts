/** A production workflow: an agent looks something up in a mailbox, a person approves of its answer, and it is sent. */
import { Agent, tool } from '@openai/agents-core';
import { TemporalOpenAIRunner } from '@temporalio/openai-agents/workflow';
import { condition, defineSignal, defineUpdate, proxyActivities, setHandler } from '@temporalio/workflow';
import type * as activities from './activities.ts';

export interface Task {
  readonly mailbox: number;
  readonly question: string;
}

export interface Answered {
  readonly draft: string | null;
  readonly approved: boolean;
}

const { search, read, send } = proxyActivities<typeof activities>({ startToCloseTimeout: '1 minute' });

/** Answers the draft once there is one; null if the agent gave up. */
export const draftUpdate = defineUpdate<string | null>('draft');
/** A person's decision about it. */
export const decideSignal = defineSignal<[approved: boolean]>('decide');

const MAX_TURNS = 5;
const MAX_TOKENS = 64;

export async function mailAssistant({ mailbox, question }: Task): Promise<Answered> {
  let draft: string | null | undefined;
  let approved: boolean | undefined;
  setHandler(draftUpdate, async () => {
    await condition(() => draft !== undefined);
    return draft ?? null;
  });
  setHandler(decideSignal, (decision) => {
    approved = decision;
  });
  draft = await answer(mailbox, question);
  await condition(() => approved !== undefined);
  if (draft !== null && approved === true) await send({ mailbox, text: draft });
  return { draft, approved: approved === true };
}

async function answer(mailbox: number, question: string): Promise<string | null> {
  const agent = new Agent({
    name: 'assistant',
    model: 'gpt-5-mini',
    modelSettings: { maxTokens: MAX_TOKENS },
    tools: toolsOf(mailbox),
  });
  try {
    const { finalOutput } = await new TemporalOpenAIRunner().run(agent, question, { maxTurns: MAX_TURNS });
    return finalOutput ?? null;
  } catch (error) {
    // Too many turns, or a call that cannot be read: a person is told so.
    if (isGivenUp(error)) return null;
    throw error;
  }
}

function isGivenUp(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'AgentsWorkflowError';
}

/** Schemas as the pocket model knows them, to the byte. Other models take zod's as well: `parameters: z.object({ … })`. */
function toolsOf(mailbox: number) {
  return [
    tool({
      name: 'search',
      description: 'Ids of what has the word.',
      parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] } as never,
      strict: false,
      execute: (input) => search({ mailbox, ...(input as { query: string }) }),
    }),
    tool({
      name: 'read',
      description: 'The text of an id.',
      parameters: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] } as never,
      strict: false,
      execute: (input) => read({ mailbox, ...(input as { id: number }) }),
    }),
  ];
}
