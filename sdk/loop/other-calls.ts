/**
 * Calls of models that are not the one that is played (an opponent, a judge, a simulated user): an attempt that is
 * repeated gets the answer that was received, and nothing is paid for twice.
 */
import { hashOf } from '../../core/hashes.ts';
import type { PlayingAttempt } from './playing-attempt.ts';

type Body = Record<string, unknown>;

interface Answer {
  status: number;
  text: string;
}

/** Thrown through `once`, which keeps what came back and nothing else. */
class NoAnswer extends Error {
  readonly response: Response;
  constructor(response: Response) {
    super(`status ${response.status}`);
    this.response = response;
  }
}

export async function askOther(
  playing: PlayingAttempt,
  name: string,
  body: Body,
  send: (body: Body) => Promise<Response>,
): Promise<Response> {
  const { model: _model, ...asked } = body;
  const call = `${name} ${hashOf(asked)}`;
  const occurrence = playing.asked.get(call) ?? 0;
  playing.asked.set(call, occurrence + 1);
  try {
    const { status, text } = await playing.once(`${call} ${occurrence}`, () => receive(send, body));
    return new Response(text, { status, headers: { 'content-type': 'application/json' } });
  } catch (error) {
    // Asked again, it is the same call.
    playing.asked.set(call, (playing.asked.get(call) ?? 1) - 1);
    if (error instanceof NoAnswer) return error.response;
    throw error;
  }
}

async function receive(send: (body: Body) => Promise<Response>, body: Body): Promise<Answer> {
  const response = await send(body);
  if (!response.ok) throw new NoAnswer(response);
  return { status: response.status, text: await response.text() };
}
