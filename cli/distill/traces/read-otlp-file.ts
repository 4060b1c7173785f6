/** Traces in a file: JSON, JSON by lines or protobuf, as collectors' file exporters and SDKs write them. */
import { constants } from 'node:buffer';
import { gunzipSync } from 'node:zlib';

import { badConfig, type TemperError } from '../../../core/contract/failures.ts';
import { decodeTraces, readTracesJson, type ReadSpan } from '../../../outbound/trace/otlp/decode.ts';
import { readWhole } from '../../command-line/files.ts';

/** What Node reads at once. */
const MOST_BYTES = 2 ** 31 - 1;

/** A larger file is read by lines; `mostText`: what Node takes as one string. */
export async function readOtlpFile(path: string, mostText = constants.MAX_STRING_LENGTH): Promise<ReadSpan[]> {
  const bytes = unpacked(await readWhole('--from-otlp', path, MOST_BYTES), path);
  return looksLikeJson(bytes) ? readJson(bytes, path, mostText) : readProtobuf(bytes, path);
}

function unpacked(bytes: Buffer, path: string): Buffer {
  const magic = bytes.subarray(0, 4).toString('hex');
  if (magic === '28b52ffd')
    throw badConfig(`--from-otlp must be plain or gzipped, ${path} is compressed with zstd; run zstd -d on it first`);
  if (!magic.startsWith('1f8b')) return bytes;
  try {
    return gunzipSync(bytes, { maxOutputLength: MOST_BYTES });
  } catch (cause) {
    throw notTraces(path, 'as gzip', cause);
  }
}

/** A protobuf request begins with the byte 0x0a, which is a line feed; JSON has a bracket behind its blanks. */
function looksLikeJson(bytes: Buffer): boolean {
  const first = bytes.findIndex((byte) => ![0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf].includes(byte));
  return first >= 0 && (bytes[first] === 0x7b || bytes[first] === 0x5b) && !isRequest(bytes);
}

function isRequest(bytes: Buffer): boolean {
  try {
    return decodeTraces(bytes).length > 0;
  } catch {
    return false;
  }
}

function readJson(bytes: Buffer, path: string, mostText: number): ReadSpan[] {
  try {
    if (bytes.length <= mostText) return readTracesJson(JSON.parse(textOf(bytes)));
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw notTraces(path, 'as a whole', cause);
  }
  const spans: ReadSpan[] = [];
  let number = 0;
  for (let [at, end] = [0, 0]; at < bytes.length; at = end + 1) {
    end = bytes.indexOf('\n', at);
    if (end === -1) end = bytes.length;
    number++;
    try {
      const line = textOf(bytes.subarray(at, end));
      if (line.trim() !== '') for (const span of readTracesJson(JSON.parse(line))) spans.push(span);
    } catch (cause) {
      throw notTraces(path, `in line ${number}`, cause);
    }
  }
  return spans;
}

function textOf(bytes: Buffer): string {
  return bytes.toString('utf8').replace(/^\uFEFF/, '');
}

/** One request, or many with the length of each in four bytes before it, as the collector writes them. */
function readProtobuf(bytes: Buffer, path: string): ReadSpan[] {
  const frames = framesOf(bytes) ?? [bytes];
  return frames.flatMap((frame, index) => {
    try {
      return decodeTraces(frame);
    } catch (cause) {
      throw notTraces(path, frames.length === 1 ? 'as a whole' : `in message ${index + 1}`, cause);
    }
  });
}

/** Null if the lengths do not fit. */
function framesOf(bytes: Buffer): Buffer[] | null {
  const frames: Buffer[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (at + 4 > bytes.length) return null;
    const end = at + 4 + bytes.readUInt32BE(at);
    if (end > bytes.length) return null;
    frames.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return frames;
}

function notTraces(path: string, where: string, cause: unknown): TemperError {
  const said = (cause instanceof Error ? cause.message : String(cause)).slice(0, 200);
  return badConfig(
    `--from-otlp must be a file of OTLP traces in JSON or protobuf, ${path} could not be read ${where}: ${said}; export it with the collector's file exporter`,
  );
}
