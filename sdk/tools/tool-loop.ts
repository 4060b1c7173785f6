/** Model ↔ tools until done: the conversation of an agent that acts, with limits, and the same in every repetition. */
import type OpenAI from 'openai';

import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { given, optional, takes, whole } from '../options/options.ts';
import { hasOutgrown } from '../../play/connections/ask-model.ts';
import type { RewardTurn } from '../../play/recorder/turns.ts';
import { runCall, type FunctionCall, type Once, type PlayedToolCall } from './run-call.ts';
import type { Tool } from './tool.ts';

export type { PlayedToolCall } from './run-call.ts';

type Message = OpenAI.Chat.ChatCompletionMessageParam;
type Choice = OpenAI.Chat.ChatCompletion.Choice & { malformed_tool_calls?: number };
type Request = OpenAI.Chat.ChatCompletionCreateParamsNonStreaming;

/** A rollout's context will do. */
export interface ToolLoopContext {
  openai: OpenAI;
  model: string;
  /** Needed where a tool has `once`. */
  once?: Once;
  /** Needed where turns are rewarded. */
  rewardTurn?: RewardTurn;
  /** Ends the loop between two steps of it. */
  signal?: AbortSignal;
}

export interface ToolLoopOptions {
  /** The beginning of the conversation. */
  messages: readonly Message[];
  tools: readonly Tool[];
  /** Answers of the model; 10. */
  maxTurns?: number;
  /** Sampled tokens of all turns together. */
  maxTokens?: number;
  /** Sampled tokens of one turn; the run's, where neither this nor `maxTokens` is given. */
  maxTokensPerTurn?: number;
  /** Runs the calls of a turn at once instead of one after the other; results stand in the order of the calls anyway. */
  concurrent?: boolean;
  /** The reward of a turn by itself, computed after its calls were run. */
  turnReward?: (turn: PlayedTurn) => number;
  /** Goes into every request: `tool_choice`, `stop`, `temperature` … */
  request?: Omit<Request, 'model' | 'messages' | 'tools' | 'n' | 'stream' | 'max_tokens' | 'max_completion_tokens'>;
}

const checkOptions = takes<ToolLoopOptions>('toolLoop', {
  ...given('messages', 'tools'),
  maxTurns: whole(1, 'change it').optional(),
  maxTokens: whole(1, 'pass 2000').optional(),
  maxTokensPerTurn: whole(1, 'pass 500').optional(),
  ...optional('concurrent', 'turnReward', 'request'),
});

/** The model's answer, and the results of its calls. */
export interface PlayedTurn {
  /** Counted from 1. */
  turn: number;
  choice: Choice;
  calls: readonly PlayedToolCall[];
}

/** The model answered; a tool with `ends` succeeded; a limit; no room in the model's context. */
export type ToolLoopEnd = 'answer' | 'tool' | 'turns' | 'tokens' | 'context';

export interface ToolLoopResult {
  ended: ToolLoopEnd;
  /** The model's final answer; null if there is none. */
  answer: string | null;
  /** The whole conversation, ready to be gone on with. */
  messages: Message[];
  turns: number;
  /** Sampled in all turns. */
  tokens: number;
  /** In the order in which their results stand in the conversation. */
  calls: PlayedToolCall[];
}

const DEFAULT_TURNS = 10;
const MALFORMED =
  'The tool call could not be read. A call is JSON with name and arguments, between <tool_call> and </tool_call>.';

export async function toolLoop(context: ToolLoopContext, options: ToolLoopOptions): Promise<ToolLoopResult> {
  checkLoop(context, options);
  return new Loop(context, options).play();
}

class Loop {
  readonly #context: ToolLoopContext;
  readonly #options: ToolLoopOptions;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #messages: Message[];
  readonly #calls: PlayedToolCall[] = [];
  #turns = 0;
  #tokens = 0;

  constructor(context: ToolLoopContext, options: ToolLoopOptions) {
    this.#context = context;
    this.#options = options;
    this.#tools = new Map(options.tools.map((tool) => [tool.name, tool]));
    this.#messages = [...options.messages];
  }

  async play(): Promise<ToolLoopResult> {
    let ended: ToolLoopEnd | null = null;
    while (ended === null) ended = this.#limitReached() ?? (await this.#playTurn());
    const last = this.#messages.at(-1);
    const answer = ended === 'answer' && typeof last?.content === 'string' ? last.content : null;
    return { ended, answer, messages: this.#messages, turns: this.#turns, tokens: this.#tokens, calls: this.#calls };
  }

  #limitReached(): ToolLoopEnd | null {
    const { maxTurns = DEFAULT_TURNS, maxTokens = Infinity } = this.#options;
    this.#context.signal?.throwIfAborted();
    if (this.#turns >= maxTurns) return 'turns';
    return this.#tokens >= maxTokens ? 'tokens' : null;
  }

  async #playTurn(): Promise<ToolLoopEnd | null> {
    const choice = await this.#ask();
    if (choice === null) return 'context';
    const calls = this.#callsOf(choice);
    this.#messages.push({
      role: 'assistant',
      content: choice.message.content,
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    });
    const before = this.#calls.length;
    const isEnd = calls.length > 0 && (await this.#run(calls));
    this.#reward({ turn: this.#turns, choice, calls: this.#calls.slice(before) });
    if (calls.length > 0) return isEnd ? 'tool' : null;
    if (choice.finish_reason === 'length') return 'tokens';
    if ((choice.malformed_tool_calls ?? 0) === 0) return 'answer';
    this.#messages.push({ role: 'user', content: MALFORMED });
    return null;
  }

  #reward(turn: PlayedTurn): void {
    const { turnReward } = this.#options;
    if (turnReward !== undefined) this.#context.rewardTurn?.(turn.choice, turnReward(turn));
  }

  /** Null where the conversation has outgrown the model. */
  async #ask(): Promise<Choice | null> {
    const { openai, model } = this.#context;
    const tools = this.#options.tools.map(({ definition }) => definition);
    const request = { ...this.#options.request, model, messages: this.#messages, tools, ...this.#tokenLimit() };
    try {
      const { choices, usage } = await openai.chat.completions.create(request);
      this.#turns += 1;
      this.#tokens += usage?.completion_tokens ?? 0;
      if (choices[0] === undefined) throw new Error('the model must answer with a choice, it gave none');
      return choices[0];
    } catch (error) {
      if (hasOutgrown(error ?? {})) return null;
      throw error;
    }
  }

  #tokenLimit(): { max_completion_tokens?: number } {
    const { maxTokens = Infinity, maxTokensPerTurn = Infinity } = this.#options;
    const limit = Math.min(maxTokens - this.#tokens, maxTokensPerTurn);
    return limit === Infinity ? {} : { max_completion_tokens: limit };
  }

  /** Some hosts leave ids out; then results would have no call to belong to. */
  #callsOf({ message }: Choice): FunctionCall[] {
    const calls = (message.tool_calls ?? []).filter((call) => call.type === 'function');
    return calls.map((call, index) => (call.id ? call : { ...call, id: `call-${this.#turns}-${index}` }));
  }

  /** True where one of them ends the loop. */
  async #run(calls: readonly FunctionCall[]): Promise<boolean> {
    const played = this.#options.concurrent === true ? await this.#runAtOnce(calls) : await this.#runInTurn(calls);
    // A tool's result after the end of the attempt is dropped.
    this.#context.signal?.throwIfAborted();
    for (const { id, content } of played) this.#messages.push({ role: 'tool', tool_call_id: id, content });
    this.#calls.push(...played);
    return played.some(({ name, failed }) => !failed && this.#tools.get(name)?.ends === true);
  }

  async #runInTurn(calls: readonly FunctionCall[]): Promise<PlayedToolCall[]> {
    const played: PlayedToolCall[] = [];
    for (const [index, call] of calls.entries()) played.push(await this.#runOne(call, index));
    return played;
  }

  /** All have ended before one's failure is returned: none acts behind the agent's back. */
  async #runAtOnce(calls: readonly FunctionCall[]): Promise<PlayedToolCall[]> {
    const running = calls.map((call, index) => this.#runOne(call, index));
    await Promise.allSettled(running);
    return Promise.all(running);
  }

  #runOne(call: FunctionCall, index: number): Promise<PlayedToolCall> {
    const { once = null } = this.#context;
    return runCall(call, { tools: this.#tools, once, turn: this.#turns, index });
  }
}

function checkLoop({ once, rewardTurn }: ToolLoopContext, options: ToolLoopOptions): void {
  const { tools, turnReward } = checkOptions(options);
  const names = tools.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  const lasting = tools.find((tool) => tool.once);
  if (names.length === 0) throw refusal('there must be at least one tool, got none', 'call the model without a loop');
  if (twice !== undefined) throw refusal(`tools must have unique names, got ${twice} twice`, 'rename one');
  if (turnReward !== undefined && rewardTurn === undefined)
    throw refusal('turnReward has no effect because the context has no rewardTurn', "pass the rollout's context");
  if (lasting !== undefined && once === undefined)
    throw refusal(
      `the tool ${lasting.name} must run only once, but the context has no once`,
      "pass the rollout's context",
    );
}

function refusal(rule: string, remedy: string): TemperError {
  return badConfig(`toolLoop: ${rule}; ${remedy}`);
}
