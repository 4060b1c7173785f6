/**
 * Journals of a store in a bucket. A record goes to a file of this host first, without fsync, and is uploaded in the
 * background: objects cannot grow, so every upload is a segment, and later records go to the next one. Opening a
 * journal reads the bucket's segments and those still on this host.
 */
import { randomBytes } from 'node:crypto';

import pLimit from 'p-limit';

import type { AppendFile } from './file-system.ts';
import type { S3Objects } from './s3-objects.ts';
import type { Spool } from './s3-spool.ts';
import type { JournalSegments } from '../store.ts';
import { asUnavailable } from './unavailable.ts';

export interface UploadLimits {
  /** A segment is uploaded when its first record is so old … */
  everyMs: number;
  /** … or when it has this many bytes. */
  bytes: number;
}

interface Segment {
  /** One more than the highest that its writer found. */
  number: number;
  /** Random: no two writers share a segment, on whatever hosts they are. */
  writer: string;
  part: number;
  bytes: Uint8Array;
}

interface OpenPart {
  name: string;
  file: AppendFile;
  bytes: number;
  timer: NodeJS.Timeout;
}

const SEGMENT = /^(\d+)-([0-9a-f]+)-(\d+)\.journal$/;
const WRITER_BYTES = 6;
const PARALLEL_READS = 16;

export async function openS3Journal(
  objects: S3Objects,
  spool: Spool,
  limits: UploadLimits,
  prefix: string,
): Promise<JournalSegments> {
  // This host first: a file leaves it once the bucket has the segment, so that none is missed in between.
  const here = await spool.read(prefix);
  const names = (await objects.names(prefix)).filter((name) => SEGMENT.test(name) && !here.has(name));
  const limit = pLimit(PARALLEL_READS);
  const there = await Promise.all(
    names.map((name) => limit(async () => [name, await objects.get(`${prefix}/${name}`)] as const)),
  );
  const segments = [...here, ...there].flatMap(([name, bytes]) => parseSegment(name, bytes));
  const ordered = segments.toSorted(inOrder);
  const next = (ordered.at(-1)?.number ?? -1) + 1;
  return new S3Journal(
    spool,
    limits,
    prefix,
    next,
    ordered.map(({ bytes }) => bytes),
  );
}

class S3Journal implements JournalSegments {
  readonly existing: readonly Uint8Array[];
  readonly #spool: Spool;
  readonly #limits: UploadLimits;
  readonly #prefix: string;
  readonly #name: string;
  #parts = 0;
  #part: OpenPart | null = null;
  #broken: Error | null = null;

  constructor(spool: Spool, limits: UploadLimits, prefix: string, number: number, existing: readonly Uint8Array[]) {
    this.#spool = spool;
    this.#limits = limits;
    this.#prefix = prefix;
    this.#name = `${number}-${randomBytes(WRITER_BYTES).toString('hex')}`;
    this.existing = existing;
  }

  append(record: Uint8Array): void {
    if (this.#broken !== null) throw this.#broken;
    try {
      this.#part ??= this.#begin();
      this.#part.file.append(record);
      this.#part.bytes += record.length;
      if (this.#part.bytes >= this.#limits.bytes) this.#handOver();
    } catch (error) {
      // Nothing is read after a torn record: the next writer begins a new segment.
      this.#broken = asUnavailable(error, this.#spool.folder);
      throw this.#broken;
    }
  }

  close(): void {
    this.#handOver();
    this.#broken ??= new Error('the journal is closed');
  }

  #begin(): OpenPart {
    const name = `${this.#name}-${this.#parts++}.journal`;
    const file = this.#spool.openAppend(this.#prefix, name);
    const timer = setTimeout(() => this.#handOver(), this.#limits.everyMs).unref();
    return { name, file, bytes: 0, timer };
  }

  #handOver(): void {
    const part = this.#part;
    if (part === null) return;
    this.#part = null;
    clearTimeout(part.timer);
    try {
      part.file.close();
    } catch (error) {
      this.#broken ??= asUnavailable(error, this.#spool.folder);
    }
    this.#spool.upload(this.#prefix, part.name);
  }
}

function parseSegment(name: string, bytes: Uint8Array | null): Segment[] {
  const [, number, writer, part] = SEGMENT.exec(name) ?? [];
  if (bytes === null || writer === undefined) return [];
  return [{ number: Number(number), writer, part: Number(part), bytes }];
}

function inOrder(a: Segment, b: Segment): number {
  if (a.number !== b.number) return a.number - b.number;
  if (a.writer !== b.writer) return a.writer < b.writer ? -1 : 1;
  return a.part - b.part;
}
