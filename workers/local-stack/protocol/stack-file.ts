/** `.temper/stack.json`: what the stack chose and started, for adoption, for the next start, and for cleaning up after a kill. */
import { z } from 'zod';
import { readOwnFile, writeAtomically } from '../../project/own-file.ts';
import type { ProcessMark } from '../../process/processes.ts';

export interface StackPorts {
  readonly temporal: number;
  readonly ui: number;
  readonly engine: number;
}

export interface StackFile {
  readonly schema: 1;
  readonly pid: number;
  readonly startTime: string;
  readonly socket: string;
  /** Null until they are chosen for the first time. */
  readonly ports: StackPorts | null;
  readonly children: readonly ProcessMark[];
}

const pid = z.int().min(2);
const port = z.int().min(1).max(65_535);
const StackFileSchema = z.object({
  schema: z.literal(1),
  pid,
  startTime: z.string(),
  socket: z.string(),
  ports: z.object({ temporal: port, ui: port, engine: port }).nullable(),
  children: z.array(z.object({ name: z.string(), pid, startTime: z.string().min(1) })),
}) satisfies z.ZodType<StackFile>;

/** Null if it is missing, unreadable or another user's: its content can be chosen anew. */
export function readStackFile(file: string): StackFile | null {
  try {
    return StackFileSchema.parse(JSON.parse(readOwnFile(file) ?? ''));
  } catch {
    return null;
  }
}

export function writeStackFile(file: string, stack: StackFile): void {
  writeAtomically(file, `${JSON.stringify(stack, null, 2)}\n`);
}
