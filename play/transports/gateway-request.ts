/** What the gateway lets in: requests of this machine's programs, with a key, of a bounded size. */
import { BODY_TOO_LARGE } from '../../core/wire-constants.ts';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** As the GPU worker has it; a longer conversation has outgrown the model. */
const MAX_BODY_BYTES = 16 * 1024 ** 2;
/** Of all requests of one attempt that are answered at the same time. */
export const MAX_HELD_BYTES = 128 * 1024 ** 2;
/** A client sees a refusal only once all that it sends was taken; for this much it is. */
const MAX_SENT_BYTES = 256 * 1024 ** 2;

/** A request that the gateway itself refuses. */
export class GatewayRefusal extends Error {
  readonly status: number;
  readonly code: string | null;

  constructor(status: number, message: string, code: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** A page in a browser names itself, or another host that it made point here. */
export function checkSender({ host, origin }: IncomingHttpHeaders, port: number): void {
  const names = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`);
  if (!names.includes(host ?? ''))
    throw new GatewayRefusal(
      403,
      `the gateway answers to ${names.join(', ')}, got the host ${JSON.stringify(host ?? '')}`,
    );
  if (origin !== undefined) throw new GatewayRefusal(403, 'the gateway answers programs, not pages of a browser');
}

/** As OpenAI's clients send it, or as Anthropic's do. Empty where there is none. */
export function keyOf({ authorization = '', 'x-api-key': key }: IncomingHttpHeaders): string {
  const bearer = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  return bearer ?? (typeof key === 'string' ? key : '');
}

/** `hold` is told of each piece that is kept, and says whether there is room for it. */
export async function readBody(request: IncomingMessage, hold: (bytes: number) => boolean): Promise<string> {
  const chunks: Buffer[] = [];
  let sent = 0;
  let hasRoom = true;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sent += chunk.length;
    if (sent > MAX_SENT_BYTES) break;
    if (sent <= MAX_BODY_BYTES && hasRoom) hasRoom = hold(chunk.length);
    if (sent <= MAX_BODY_BYTES && hasRoom) chunks.push(chunk);
    else chunks.length = 0;
  }
  if (sent > MAX_BODY_BYTES)
    throw new GatewayRefusal(
      413,
      `a request may have ${MAX_BODY_BYTES} bytes, this one has more; shorten the conversation`,
      BODY_TOO_LARGE,
    );
  if (!hasRoom) throw new GatewayRefusal(429, 'too many long requests at once; send fewer');
  return Buffer.concat(chunks).toString('utf8');
}

/** Takes what a refused client still sends. */
export async function discardBody(request: IncomingMessage): Promise<void> {
  let sent = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      sent += chunk.length;
      if (sent > MAX_SENT_BYTES) break;
    }
  } catch {
    // The client is gone.
  }
}
