/** Records of a journal: `[u32le length][u32le crc32][payload]`. What follows a torn record in its segment is not read. */
import { crc32 } from 'node:zlib';

const HEADER_BYTES = 8;

export function encodeRecord(payload: string | Uint8Array): Uint8Array {
  const length = Buffer.byteLength(payload);
  const record = Buffer.allocUnsafe(HEADER_BYTES + length);
  if (typeof payload === 'string') record.write(payload, HEADER_BYTES);
  else record.set(payload, HEADER_BYTES);
  record.writeUInt32LE(length, 0);
  record.writeUInt32LE(crc32(record.subarray(HEADER_BYTES)), 4);
  return record;
}

/**
 * For records that are the only copy, and whose payloads begin with `begin`: goes on with the next sound record behind a
 * damaged one. `onLost` is told the number of bytes between them; the torn end of a killed writer is no loss.
 */
export function* decodeAround(
  segment: Uint8Array,
  begin: Uint8Array,
  onLost: (bytes: number) => void,
): Generator<Buffer> {
  const bytes = Buffer.from(segment.buffer, segment.byteOffset, segment.byteLength);
  for (let start = 0; ;) {
    for (const payload of decodeRecords(bytes.subarray(start))) {
      start += HEADER_BYTES + payload.length;
      yield payload;
    }
    const next = findRecord(bytes, start + 1, begin);
    if (next === null) return;
    onLost(next - start);
    start = next;
  }
}

function findRecord(bytes: Buffer, from: number, begin: Uint8Array): number | null {
  let found = bytes.indexOf(begin, from + HEADER_BYTES);
  while (found !== -1 && decodeRecords(bytes.subarray(found - HEADER_BYTES)).next().done === true)
    found = bytes.indexOf(begin, found + 1);
  return found === -1 ? null : found - HEADER_BYTES;
}

export function* decodeRecords(segment: Uint8Array): Generator<Buffer> {
  const bytes = Buffer.from(segment.buffer, segment.byteOffset, segment.byteLength);
  for (let start = 0; start + HEADER_BYTES <= bytes.length;) {
    const end = start + HEADER_BYTES + bytes.readUInt32LE(start);
    const payload = bytes.subarray(start + HEADER_BYTES, end);
    if (end > bytes.length || crc32(payload) !== bytes.readUInt32LE(start + 4)) return;
    yield payload;
    start = end;
  }
}
