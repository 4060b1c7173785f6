/** Greedy answers of a deployment, by OpenAI's chat completions, with log-probabilities where it gives them. */
import { z } from 'zod';

import { TemperError } from '../../core/contract/failures.ts';
import type { GivenAnswer } from '../../core/contract/programs.ts';
import { callHttp, type HttpCaller } from '../../core/text/http.ts';
import type { RecordedPrompt } from './recorded-prompts.ts';
import type { DeployAddress } from './targets/target.ts';

/** An answer, and the number of tokens that the deployment made of the prompt. */
export interface DeployedAnswer extends GivenAnswer {
  /** Null: it does not tell. */
  readonly promptTokens: number | null;
}

/** Enough to tell policies apart, and little to pay for. */
const ANSWER_TOKENS = 32;
/** A server may load the model first, or compute on a few cores. */
const ANSWER_MS = 300_000;
/** Members of a recorded request that are part of its prompt. */
const PROMPT_MEMBERS = ['messages', 'tools', 'tool_choice', 'chat_template_kwargs'];

const Score = z.looseObject({ token: z.string(), logprob: z.number(), bytes: z.array(z.number()).nullish() });
const Answer = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        message: z.looseObject({ content: z.string().nullish(), tool_calls: z.array(z.unknown()).nullish() }),
        finish_reason: z.string().nullish(),
        logprobs: z.looseObject({ content: z.array(Score).nullish() }).nullish(),
      }),
    )
    .min(1),
  usage: z.looseObject({ prompt_tokens: z.number().nullish() }).nullish(),
});
type Choice = z.infer<typeof Answer>['choices'][number];

export async function askDeployed(
  caller: HttpCaller,
  { baseUrl, model }: DeployAddress,
  prompts: readonly RecordedPrompt[],
): Promise<DeployedAnswer[]> {
  const url = `${baseUrl}/chat/completions`;
  const answers: DeployedAnswer[] = [];
  let logprobs = true;
  for (const { request, tokenIds } of prompts) {
    const members = Object.fromEntries(PROMPT_MEMBERS.flatMap((name) => memberOf(request, name)));
    const json = { ...members, model, max_tokens: ANSWER_TOKENS, temperature: 0, stream: false };
    const call = { method: 'POST' as const, url, timeoutMs: ANSWER_MS };
    const asked = { ...call, json: { ...json, ...(logprobs && { logprobs }) } };
    let answer = await callHttp(caller, { ...asked, expected: logprobs ? [400, 422] : [] });
    if (answer.status >= 400) {
      logprobs = false;
      answer = await callHttp(caller, { ...asked, json });
    }
    answers.push(readAnswer(caller, tokenIds, answer.json));
  }
  return answers;
}

const memberOf = (request: RecordedPrompt['request'], name: string): [string, unknown][] =>
  request[name] === undefined ? [] : [[name, request[name]]];

function readAnswer({ system }: HttpCaller, promptTokenIds: readonly number[], json: unknown): DeployedAnswer {
  const parsed = Answer.safeParse(json);
  if (!parsed.success)
    throw new TemperError('DeploymentFailed', `${system} must answer with a chat completion, but gave something else`);
  const { choices, usage } = parsed.data;
  const choice = choices[0]!;
  const scores = choice.logprobs?.content ?? [];
  const text = scores.length > 0 ? textOf(scores) : plainText(choice);
  return {
    promptTokenIds: [...promptTokenIds],
    text: text ?? '',
    scores: scores.length > 0 ? scores.map(({ token, logprob }) => ({ token, logprob })) : null,
    hasEnded: text !== null && ['stop', 'tool_calls'].includes(choice.finish_reason ?? ''),
    promptTokens: usage?.prompt_tokens ?? null,
  };
}

/** All that was sampled, also what the server takes for thoughts or calls. A token may be half of a character. */
function textOf(scores: readonly z.infer<typeof Score>[]): string {
  const parts = scores.map(({ token, bytes }) => (bytes ? Buffer.from(bytes) : Buffer.from(token, 'utf8')));
  return Buffer.concat(parts).toString('utf8');
}

/** Null if a call or thoughts were cut out of it: what was sampled cannot be told then. */
function plainText({ message }: Choice): string | null {
  const isCut = (message.tool_calls?.length ?? 0) > 0 || Boolean(message['reasoning_content'] ?? message['reasoning']);
  return isCut ? null : (message.content ?? '');
}
