/** Bodies of answers, compressed if the client takes them so. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const zip = promisify(gzip);

/** Below it, compressing takes longer than sending. */
const LEAST_BYTES = 1400;

export interface Body {
  readonly bytes: Buffer;
  readonly encoding: 'gzip' | null;
}

/** `accepts`: the header `accept-encoding`. */
export function chooseEncoding(accepts: string): Body['encoding'] {
  const parts = accepts.split(',').map((part) => part.trim().toLowerCase());
  const takes = parts.some((part) => part === 'gzip' || (part.startsWith('gzip;') && !/;\s*q=0(\.0*)?$/.test(part)));
  return takes ? 'gzip' : null;
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

export async function compress(bytes: Buffer, wanted: Body['encoding']): Promise<Body> {
  const encoding = bytes.length < LEAST_BYTES ? null : wanted;
  return { bytes: encoding === null ? bytes : await zip(bytes), encoding };
}
