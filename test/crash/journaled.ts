/** Counts, from the engine's log, how often calls were executed whose answers had been journaled before a kill. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Project } from './project.ts';

const HEADER_BYTES = 8;

/** Calls that stand in the journal of one step now, by the ids under which the engine logs them. */
export function journaledCalls(project: Project, run: string, step: number): string[] {
  const folder = project.path('store', 'runs', run, 'journal', `0.${step}`);
  if (!existsSync(folder)) return [];
  const parts = readdirSync(folder);
  return parts.flatMap((part) =>
    readdirSync(join(folder, part)).flatMap((segment) =>
      readRecords(readFileSync(join(folder, part, segment))).map(
        ({ a, k, o }) => `${run}.0.${step}.${part}.${a}/${k}/${o}`,
      ),
    ),
  );
}

export function executions(project: Project): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { msg, call } of project.log('gpu-worker')) {
    if (msg === 'call' && typeof call === 'string') counts.set(call, (counts.get(call) ?? 0) + 1);
  }
  return counts;
}

/** Written anew from the format's description, so that the product's reader is not its own witness. */
function readRecords(bytes: Buffer): { a: number; k: string; o: number }[] {
  const records: { a: number; k: string; o: number }[] = [];
  for (let start = 0; start + HEADER_BYTES <= bytes.length;) {
    const end = start + HEADER_BYTES + bytes.readUInt32LE(start);
    const payload = bytes.subarray(start + HEADER_BYTES, end);
    if (end > bytes.length || crc32(payload) !== bytes.readUInt32LE(start + 4)) break;
    records.push(JSON.parse(payload.toString('utf8')));
    start = end;
  }
  return records;
}
