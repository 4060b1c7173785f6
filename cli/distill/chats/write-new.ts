/** Files of `temper distill`: whole or not at all, and never in the place of another. */
import { existsSync } from 'node:fs';
import { link, rm, writeFile } from 'node:fs/promises';

import type { ChatExample } from '../../../core/chat-examples.ts';
import { badConfig, type TemperError } from '../../../core/failures.ts';
import { UsageError } from '../../command-line/errors.ts';

type FileFlag = '--out' | '--scenarios';

/** `flag` named the file. */
export async function writeNew(file: string, text: string, flag: FileFlag): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    await writeFile(temporary, text, { flag: 'wx' });
    await link(temporary, file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw unwritten(file, flag, code, error);
    throw existing(file, flag);
  } finally {
    await rm(temporary, { force: true });
  }
}

export function refuseExisting(file: string, flag: FileFlag): void {
  if (existsSync(file)) throw existing(file, flag);
}

function existing(file: string, flag: FileFlag): UsageError {
  return new UsageError(
    `${flag} must be a new file (temper distill overwrites nothing), but ${file} exists; pass another one, or remove it first`,
  );
}

function unwritten(file: string, flag: string, code: string | undefined, cause: unknown): TemperError {
  const rule = `${flag} must be a file that can be written, got ${file} (${code})`;
  return badConfig(`${rule}; pass another one`, { cause });
}

/** JSON line of an example; its position in the file is its id. */
export function toLine({ messages, tools, metadata }: ChatExample): string {
  return `${JSON.stringify({ messages, ...(tools === undefined ? {} : { tools }), metadata })}\n`;
}
