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
