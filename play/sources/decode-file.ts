/** Texts of a file in UTF-8, or in UTF-16 if its first bytes say so, as spreadsheets and Windows write them. */
import { createReadStream } from 'node:fs';
import { TextDecoder } from 'node:util';

import { badConfig, type TemperError } from '../../core/contract/failures.ts';

/** Another encoding would turn letters into U+FFFD, and nobody would see it. */
export async function* decodeFile(file: string): AsyncGenerator<string> {
  let decoders: ReturnType<typeof decodersOf> | null = null;
  let line = 1;
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    decoders ??= decodersOf(chunk);
    const text = decoders.lenient.decode(chunk, { stream: true });
    try {
      decoders.strict.decode(chunk, { stream: true });
    } catch (cause) {
      const [before = ''] = text.split('\uFFFD', 1);
      throw otherEncoding(file, line + countLines(before), cause);
    }
    line += countLines(text);
    yield text;
  }
  try {
    decoders?.strict.decode();
  } catch (cause) {
    throw otherEncoding(file, line, cause);
  }
}

/** The first one goes on where the second one throws, which tells the place. Both leave out a byte order mark. */
function decodersOf(first: Buffer): { lenient: TextDecoder; strict: TextDecoder } {
  const encoding = first[0] === 0xff && first[1] === 0xfe ? 'utf-16le' : 'utf-8';
  return { lenient: new TextDecoder(encoding), strict: new TextDecoder(encoding, { fatal: true }) };
}

function countLines(text: string): number {
  return text.split('\n').length - 1;
}

function otherEncoding(file: string, line: number, cause: unknown): TemperError {
  const rule = `${file} must be UTF-8, but line ${line} has other bytes`;
  const remedy = 'save it as UTF-8, for example by iconv -f WINDOWS-1252 -t UTF-8';
  return badConfig(`${rule}; ${remedy}`, { cause });
}
