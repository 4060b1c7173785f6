/** Files that flags name: read within a limit, and written whole or not at all. `flag` names them in messages. */
import { existsSync } from 'node:fs';
import { link, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { badConfig, TemperError } from '../../core/contract/failures.ts';

export async function readWhole(flag: string, file: string, maxBytes: number): Promise<Buffer> {
  try {
    const found = await stat(file);
    if (!found.isFile()) throw badConfig(`${flag} must be a file, ${file} is none; pass another one`);
    if (found.size > 0 && found.size <= maxBytes) return await readFile(file);
    throw badConfig(`${flag} must have 1 to ${maxBytes} bytes, ${file} has ${found.size}; pass another file`);
  } catch (error) {
    if (error instanceof TemperError) throw error;
    throw badConfig(`${flag} must be a file that can be read, got ${file} (${reasonOf(error)}); correct it`, {
      cause: error,
    });
  }
}

/** Text of bytes in UTF-8. */
export function textIn(flag: string, file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw badConfig(`${flag} must be text in UTF-8, ${file} is not; pass another file`, { cause });
  }
}

/** `new` never replaces a file. */
export async function writeWhole(
  flag: string,
  file: string,
  content: string | Uint8Array,
  how: 'new' | 'replace',
): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(temporary, content);
    await (how === 'new' ? link(temporary, file) : rename(temporary, file));
  } catch (cause) {
    if (how === 'new') refuseExisting(flag, file);
    throw badConfig(`${flag} must be a file that can be written, got ${file} (${reasonOf(cause)}); pass another one`, {
      cause,
    });
  } finally {
    if (existsSync(temporary)) await rm(temporary);
  }
}

export function refuseExisting(flag: string, file: string): void {
  if (!existsSync(file)) return;
  throw badConfig(`${flag} must be a new file, but ${file} exists; pass another one, or remove it first`);
}

function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
