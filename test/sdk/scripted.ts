/** Tool loops against a scripted engine over HTTP: what the policy says is told turn by turn. */
import { onTestFinished } from 'vitest';
import { z } from 'zod';

import { tool, toolLoop, type Tool, type ToolLoopOptions, type ToolLoopResult } from '../../sdk/index.ts';
import type { FakeAnswer, FakeEngine, FakeRequest } from '../fake-engine.ts';
import { playOne, type PlayOptions } from '../play/play.ts';
import { temporaryEngine } from '../play/shared-engine.ts';

export const QUESTION = { role: 'user', content: 'Which mail has the budget?' } as const;
export const search = tool({
  name: 'search',
  description: 'Finds mails.',
  parameters: z.object({ query: z.string(), limit: z.int().optional() }),
  run: ({ query }) => [`mail about ${query}`],
});

type CallText = readonly [name: string, args: unknown];

/** The policy's answers turn by turn; a list is tool calls, and arguments that are text stand as they are. */
export type Script = readonly (string | readonly CallText[] | FakeAnswer)[];

function say(script: Script, { messages }: FakeRequest): FakeAnswer {
  const turn = messages.filter(({ role }) => role === 'assistant').length;
  const said = script[turn];
  if (said === undefined) throw new Error(`nothing is scripted for turn ${turn}`);
  if (typeof said === 'string') return { content: said };
  if ('content' in said) return said;
  const calls = said.map(([name, args], index) => ({
    id: `call-${turn}-${index}`,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
  }));
  return { content: '', toolCalls: calls };
}

export interface Played {
  result: ToolLoopResult;
  metrics: Record<string, unknown>;
  failure: string | null;
}

/** One engine for each test, begun by the first play or by hand. */
export class Stage {
  engine: FakeEngine | null = null;

  async begin(script: Script): Promise<FakeEngine> {
    onTestFinished(() => void (this.engine = null));
    return (this.engine = await temporaryEngine({ answer: (request) => say(script, request) }));
  }

  /** Requests to the engine, in order. */
  asked(): FakeRequest[] {
    return (this.engine?.executed ?? []).map(({ request }) => request);
  }

  async play(
    script: Script,
    tools: readonly Tool[],
    options: Partial<ToolLoopOptions> = {},
    playing: PlayOptions = {},
  ): Promise<Played> {
    const engine = this.engine ?? (await this.begin(script));
    let result: ToolLoopResult | null = null;
    const rollout = { maxTokens: 100, maxCallsPerAttempt: 30, ...playing.rollout };
    const attempt = await playOne(
      engine,
      async (context) => {
        result = await toolLoop(context, { messages: [QUESTION], tools, ...options });
        return 1;
      },
      { ...playing, rollout },
    );
    return { result: result!, metrics: attempt.metrics, failure: attempt.failure?.message ?? null };
  }
}

export const contents = ({ result }: Played): unknown[] => result.messages.map(({ content }) => content);
