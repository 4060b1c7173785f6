/** Bodies of answers, as small as the client can take them. */
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

const brotli = promisify(brotliCompress);
const zip = promisify(gzip);

/** Below it, compressing takes longer than sending. */
const LEAST_BYTES = 1400;
/** For answers that are made once and sent once. */
const QUICK = 4;
export const BEST = 11;

export interface Body {
  readonly bytes: Buffer;
  readonly encoding: 'br' | 'gzip' | null;
}

type Encoding = Exclude<Body['encoding'], null>;

/** `accepts`: the header `accept-encoding`. */
export function chooseEncoding(accepts: string): Body['encoding'] {
  const parts = accepts.split(',').map((part) => part.trim().toLowerCase());
  const takes = (encoding: Encoding): boolean =>
    parts.some((part) => part === encoding || (part.startsWith(`${encoding};`) && !/;\s*q=0(\.0*)?$/.test(part)));
  return takes('br') ? 'br' : takes('gzip') ? 'gzip' : null;
}

const made = new WeakMap<object, Map<Body['encoding'], Promise<Body>>>();

/** An answer that several clients wait for is written and compressed once. */
export function jsonBody(value: object, wanted: Body['encoding']): Promise<Body> {
  const bodies = made.get(value) ?? new Map<Body['encoding'], Promise<Body>>();
  made.set(value, bodies);
  const body = bodies.get(wanted) ?? compress(Buffer.from(JSON.stringify(value)), wanted);
  bodies.set(wanted, body);
  return body;
}

export async function compress(bytes: Buffer, wanted: Body['encoding'], quality = QUICK): Promise<Body> {
  const encoding = bytes.length < LEAST_BYTES ? null : wanted;
  if (encoding === null) return { bytes, encoding };
  if (encoding === 'gzip') return { bytes: await zip(bytes), encoding };
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return { bytes: await brotli(bytes, { params }), encoding };
}
