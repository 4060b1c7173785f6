import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { LineSplitter } from '../../core/text/lines.ts';
import { decodeFile } from './decode-file.ts';
import { fileSource, type Identified, type MapOptions, type Row, type RowSource } from './row-source.ts';

/** Rows of a file of JSON lines. */
export function jsonLinesSource<R, S extends Identified>(
  file: string | URL,
  options: MapOptions<R, S> = {},
): RowSource<S> {
  return fileSource(file, { unit: 'line', isTable: false, read }, options);
}

async function* read(file: string): AsyncGenerator<Row> {
  let number = 0;
  try {
    for await (const line of splitLines(decodeFile(file))) {
      number += 1;
      if (line.trim() !== '') yield { value: JSON.parse(line) as unknown, number };
    }
  } catch (cause) {
    if (cause instanceof TemperError) throw cause;
    const problem =
      cause instanceof SyntaxError ? `line ${number} of the dataset is not valid JSON` : 'the dataset cannot be read';
    throw badConfig(`${problem} (${file}): ${String(cause)}; write one JSON value in each line`, {
      cause,
    });
  }
}

async function* splitLines(texts: AsyncIterable<string>): AsyncGenerator<string> {
  const splitter = new LineSplitter();
  for await (const text of texts) yield* splitter.push(text);
  yield* splitter.end();
}
