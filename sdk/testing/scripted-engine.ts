/** An engine whose answers a test has written down. Its tokens are characters, so that a history that goes on goes on token for token. */
import type { EngineConnection, HttpAnswer } from '../../play/connections/engine-connection.ts';
import type { Recorder } from '../../play/recorder/recorder.ts';
import type { CallRequest, ChatMessage } from '../../store/records/groups/trajectories.ts';

export interface ScriptedToolCall {
  readonly name: string;
  /** Text stands as it is, so that a test can have the model write broken JSON. */
  readonly arguments: object | string;
}

export interface ScriptedMessage {
  readonly content?: string;
  readonly toolCalls?: readonly ScriptedToolCall[];
  /** Default: `tool_calls` if there are some, else `stop`. */
  readonly finishReason?: 'stop' | 'length' | 'tool_calls';
}

/** Text, or a message with tool calls. */
export type ScriptedAnswer = string | ScriptedMessage;

/** `index` counts the calls of the attempt from 0. */
export type AnswerFunction = (request: CallRequest, index: number) => ScriptedAnswer | Promise<ScriptedAnswer>;

/** One answer for each call, in the order in which they arrive, or a function that answers all of them. */
export type ScriptedAnswers = readonly (ScriptedAnswer | AnswerFunction)[] | AnswerFunction;

export class ScriptedEngine implements EngineConnection {
  readonly url = 'http://scripted.invalid';
  readonly keyVariable = null;
  /** A mistake in the script, or an error of one of its functions: the test's mistake, not the agent's. */
  problem: { readonly error: unknown } | null = null;
  #count = 0;
  #recorder: Recorder | null = null;
  readonly #answers: ScriptedAnswers;
  readonly #option: string;

  /** `option`: where the test wrote the answers. */
  constructor(answers: ScriptedAnswers, option = 'answers') {
    this.#answers = answers;
    this.#option = option;
  }

  attach(recorder: Recorder): void {
    this.#recorder = recorder;
  }

  /** A function of the script may never answer: the agent can give its call up all the same. */
  post(body: string, { signals }: { signals: readonly AbortSignal[] }): Promise<HttpAnswer> {
    return Promise.race([this.#complete(body), rejectOnceAborted(AbortSignal.any([...signals]))]);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #complete(body: string): Promise<HttpAnswer> {
    const asked = JSON.parse(body) as CallRequest & { model: string };
    try {
      const index = this.#count++;
      const message = await this.#answer(asked, index);
      return { status: 200, retryAfter: null, text: JSON.stringify(completionOf(message, asked, index)) };
    } catch (error) {
      this.problem ??= { error };
      this.#recorder?.ending.failAs('the script has no answer');
      throw error;
    }
  }

  async #answer(body: CallRequest, index: number): Promise<ScriptedMessage> {
    const { logprobs: _logprobs, return_token_ids: _ids, ...request } = body;
    const scripted = typeof this.#answers === 'function' ? this.#answers : this.#answers[index];
    if (scripted === undefined) {
      const last = JSON.stringify(request.messages.at(-1));
      throw new Error(
        `the agent asks for answer ${index + 1}, but ${this.#option} has ${this.#answers.length}; add one, or end the conversation before it (the last message was ${last})`,
      );
    }
    const answer = typeof scripted === 'function' ? await scripted(request, index) : scripted;
    return typeof answer === 'string' ? { content: answer } : answer;
  }
}

function rejectOnceAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
  });
}

function completionOf(
  scripted: ScriptedMessage,
  { model, messages, tools, n = 1 }: CallRequest & { model: string },
  index: number,
) {
  const { toolCalls = [], finishReason = toolCalls.length > 0 ? 'tool_calls' : 'stop' } = scripted;
  const message = { role: 'assistant', content: scripted.content ?? '', ...toolCallsOf(toolCalls, index) };
  const promptTokenIds = [...encode(tools ?? []), ...messages.flatMap(encodeMessage), ...encode('assistant')];
  const tokenIds = encodeMessage(message).slice(encode('assistant').length);
  const content = tokenIds.map(() => ({ logprob: 0 }));
  return {
    id: `scripted-${index}`,
    object: 'chat.completion',
    created: 0,
    model,
    adapter_sha256: null,
    prompt_token_ids: promptTokenIds,
    choices: Array.from({ length: n }, (_, choice) => ({
      index: choice,
      message,
      finish_reason: finishReason,
      token_ids: tokenIds,
      logprobs: { content },
    })),
    usage: {
      prompt_tokens: promptTokenIds.length,
      completion_tokens: n * tokenIds.length,
      total_tokens: promptTokenIds.length + n * tokenIds.length,
    },
  };
}

function toolCallsOf(calls: readonly ScriptedToolCall[], index: number): { tool_calls?: object[] } {
  if (calls.length === 0) return {};
  const written = calls.map(({ name, arguments: args }, place) => ({
    id: `call-${index}-${place}`,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
  }));
  return { tool_calls: written };
}

/** A message's role, its text and its calls, each behind the other; no template rewrites any of it. */
function encodeMessage({ role, content, tool_calls: calls }: ChatMessage): number[] {
  return [...encode(role), ...encode(content ?? ''), ...encode(calls ?? []), 0];
}

function encode(value: unknown): number[] {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return Array.from(text, (character) => character.codePointAt(0) ?? 0);
}
