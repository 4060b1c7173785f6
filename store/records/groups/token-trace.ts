/**
 * Numbers that the trainer computed of each sampled token: `steps/<n>/tokens.safetensors`, which
 * `gpu-worker/temper_gpu/training/token_trace.py` writes beside the commit. For display, and in no hash.
 */
import { z } from 'zod';

import type { GroupRef } from '../../../core/contract/contract.ts';
import { requireKnownSchema, TemperError } from '../../../core/contract/failures.ts';
import { RECORD_SCHEMA, TOKEN_TRACE_METADATA } from '../../../core/contract/wire-constants.ts';
import { parseStoredJson } from '../../bytes/json.ts';
import { placeOfGroup, tokenTraceKey, type GroupPlace, type StepPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';

/** Each column has the sampled tokens of a call, in order. NaN: the trainer never scored it. */
export interface TokenColumns {
  /** Log-probability of the trainer minus the sampler's. */
  readonly logRatios: Float32Array;
  readonly entropies: Float32Array;
  /** Includes what a divergence takes from it, but not the factor of a correction. */
  readonly advantages: Float32Array;
  /** 1: it was trained; 0: a correction masked it, or no update had it. */
  readonly mask: Uint8Array;
}

export interface TokenTrace {
  /** False: of a step with several updates, and each token's numbers are those of its first update. */
  readonly isBeforeUpdates: boolean;
  /** Null: no token of the call was to be trained, as in a failed attempt. */
  readonly columnsOf: (
    group: Pick<GroupRef, 'group' | 'step' | 'branch'>,
    attempt: number,
    call: number,
  ) => TokenColumns | null;
}

const MetadataSchema = z.looseObject({ schema: z.literal(RECORD_SCHEMA), isBeforeUpdates: z.boolean() });
const HeaderSchema = z.looseObject({
  __metadata__: z.looseObject({ [TOKEN_TRACE_METADATA]: z.string() }),
});
const TensorSchema = z.looseObject({
  dtype: z.string(),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
});
/** Branch, step and number of the group, attempt, call, and the number of its tokens and advantages. */
const CALL_FIELDS = 7;
const LENGTH_BYTES = 8;

/** `place`: the step that trained, not the one that dealt a group. Null: it was not recorded, or nothing was sampled. */
export async function readTokenTrace(store: Store, place: StepPlace): Promise<TokenTrace | null> {
  const key = tokenTraceKey(place);
  const bytes = await store.read(key);
  return bytes === null ? null : parseTokenTrace(bytes, place);
}

function parseTokenTrace(bytes: Uint8Array, trained: StepPlace): TokenTrace {
  const { isBeforeUpdates, tensor } = openFile(bytes, tokenTraceKey(trained));
  const [calls, logRatios, entropies] = [
    tensor('calls', 'I32'),
    tensor('logRatios', 'F16'),
    tensor('entropies', 'F16'),
  ];
  const [advantages, mask] = [tensor('advantages', 'F32'), tensor('mask', 'U8')];
  const { spans, ends } = readSpans(calls);
  const isWhole = logRatios.byteLength === 2 * ends.tokens && entropies.byteLength === 2 * ends.tokens;
  if (!isWhole || mask.byteLength !== ends.tokens || advantages.byteLength !== 4 * ends.advantages)
    throw broken(tokenTraceKey(trained), 'its columns have other lengths than its calls');
  return {
    isBeforeUpdates,
    columnsOf: (ref, attempt, call) => {
      const span = spans.get(nameOf(placeOfGroup(trained, ref), attempt, call));
      if (span === undefined) return null;
      const { first, tokens, isSame } = span;
      const each = <T>(read: (index: number) => T) => Array.from({ length: tokens }, (_, index) => read(index));
      const half = (column: DataView) =>
        Float32Array.from(each((n) => fromHalf(column.getUint16((first.tokens + n) * 2, true))));
      const advantageOf = (n: number) => advantages.getFloat32((first.advantages + (isSame ? 0 : n)) * 4, true);
      return {
        logRatios: half(logRatios),
        entropies: half(entropies),
        advantages: Float32Array.from(each(advantageOf)),
        mask: Uint8Array.from(each((n) => mask.getUint8(first.tokens + n))),
      };
    },
  };
}

interface Span {
  /** Index of its first token, and of its first advantage. */
  first: { tokens: number; advantages: number };
  tokens: number;
  /** One advantage for all. */
  isSame: boolean;
}

function readSpans(calls: DataView): { spans: Map<string, Span>; ends: Span['first'] } {
  const spans = new Map<string, Span>();
  let first = { tokens: 0, advantages: 0 };
  for (let row = 0; (row + 1) * CALL_FIELDS * 4 <= calls.byteLength; row += 1) {
    const field = (column: number) => calls.getInt32((row * CALL_FIELDS + column) * 4, true);
    const [tokens, advantages] = [Math.max(0, field(5)), Math.max(0, field(6))];
    const place = { branch: field(0), step: field(1), group: field(2) };
    spans.set(nameOf(place, field(3), field(4)), { first, tokens, isSame: advantages < tokens });
    first = { tokens: first.tokens + tokens, advantages: first.advantages + advantages };
  }
  return { spans, ends: first };
}

const nameOf = ({ branch, step, group }: Omit<GroupPlace, 'run'>, attempt: number, call: number): string =>
  [branch, step, group, attempt, call].join('.');

/** safetensors: length of the header, header as JSON, tensors. */
function openFile(bytes: Uint8Array, key: string) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = bytes.length < LENGTH_BYTES ? Infinity : Number(view.getBigUint64(0, true));
  if (length > bytes.length - LENGTH_BYTES) throw broken(key, 'it ends too early');
  const begin = LENGTH_BYTES + length;
  const header = parseHeader(bytes.subarray(LENGTH_BYTES, begin), key);
  return {
    isBeforeUpdates: header.isBeforeUpdates,
    tensor: (name: string, dtype: string): DataView => {
      const found = TensorSchema.safeParse(header.tensors[name]);
      const [from, to] = found.data?.data_offsets ?? [0, Infinity];
      if (found.data?.dtype !== dtype || from > to || begin + to > bytes.length)
        throw broken(key, `it has no tensor ${name} of type ${dtype}`);
      return new DataView(bytes.buffer, bytes.byteOffset + begin + from, to - from);
    },
  };
}

function parseHeader(bytes: Uint8Array, key: string) {
  const header = HeaderSchema.safeParse(parseStoredJson(new TextDecoder().decode(bytes), key));
  if (!header.success) throw broken(key, 'its header does not describe tokens');
  const { ['__metadata__']: metadataOf, ...tensors } = header.data;
  const about = parseStoredJson(metadataOf[TOKEN_TRACE_METADATA], key);
  requireKnownSchema(about, key);
  const metadata = MetadataSchema.safeParse(about);
  if (!metadata.success) throw broken(key, 'its metadata do not describe tokens');
  return { isBeforeUpdates: metadata.data.isBeforeUpdates, tensors: tensors as Record<string, unknown> };
}

function broken(key: string, finding: string): TemperError {
  return new TemperError(
    'StoreCorrupt',
    `${key} must be what a step computed of its tokens, but ${finding}; it is only for display: delete it`,
  );
}

/** Node 20 has no Float16Array. */
function fromHalf(bits: number): number {
  const sign = (bits & 0x80_00) === 0 ? 1 : -1;
  const [exponent, fraction] = [(bits >> 10) & 0x1f, bits & 0x3_ff];
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}
