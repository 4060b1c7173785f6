/** `npm run bench -- scenarios`: time and memory of preparing a run with very many scenarios, from each kind of file. */
import { execFileSync } from 'node:child_process';
import { createWriteStream, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parquetWriteBuffer } from 'hyparquet-writer';
import sqlite from 'node-sqlite3-wasm';
import { countFlag, type Bench, type Flags } from './bench.ts';

const CHILD = fileURLToPath(new URL('prepare-scenarios.ts', import.meta.url));
const LOADER = fileURLToPath(new URL('../workers/typescript.js', import.meta.url));
const WANTED = { seconds: 60, mib: 500 };

export const scenarios: Bench = {
  name: 'scenarios',
  summary: 'time and memory of preparing a run with very many scenarios, from JSON lines, CSV, Parquet and SQLite',
  flags: { count: '100000', bytes: '500' },
  run,
};

interface Prepared {
  readonly trained: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly mib: { readonly peak: number; readonly before: number };
  /** For the scenarios of 64 groups, by a worker that has read none. */
  readonly readSeconds: number;
}

interface Question {
  readonly id: string;
  readonly question: string;
  readonly answer: number;
}

async function run(flags: Flags): Promise<object> {
  const [count, bytes] = [countFlag(flags, 'count'), countFlag(flags, 'bytes')];
  const folder = mkdtempSync(join(tmpdir(), 'temper-bench-scenarios-'));
  const results: Record<string, Prepared> = {};
  try {
    console.log(`${count} scenarios of about ${bytes} bytes; wanted: ${WANTED.seconds} s, ${WANTED.mib} MiB`);
    for (const [kind, write] of Object.entries(WRITERS)) {
      const file = join(folder, `scenarios.${kind}`);
      await write(file, count, bytes);
      const line = ['--import', LOADER, CHILD, file, String(count)];
      const result = JSON.parse(execFileSync(process.execPath, line, { encoding: 'utf8' })) as Prepared;
      results[kind] = result;
      const { seconds, cpuSeconds, mib, readSeconds } = result;
      const size = `${(statSync(file).size / 1024 ** 2).toFixed(0)} MiB file`;
      console.log(
        `  ${kind.padEnd(8)} ${seconds.toFixed(1)} s (processor ${cpuSeconds.toFixed(1)} s), peak ${mib.peak.toFixed(0)} MiB (${mib.before.toFixed(0)} before), 64 groups' scenarios ${readSeconds.toFixed(2)} s; ${size}`,
      );
      rmSync(file);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return { count, bytes, wanted: WANTED, ...results };
}

/** Texts differ, as real ones do: equal ones would be compressed to nothing. */
function* questions(count: number, bytes: number): Generator<Question> {
  let state = 1;
  for (let index = 0; index < count; index++) {
    const words: string[] = [];
    for (let length = 0; length < bytes - 60; length += 7) {
      state = (state * 48271) % 2147483647;
      words.push(state.toString(36).slice(0, 6).padEnd(6, 'a'));
    }
    yield { id: `question-${index}`, question: words.join(' '), answer: index };
  }
}

const WRITERS: Readonly<Record<string, (file: string, count: number, bytes: number) => Promise<void> | void>> = {
  jsonl: (file, count, bytes) => writeLines(file, count, bytes, (row) => JSON.stringify(row)),
  csv: (file, count, bytes) =>
    writeLines(
      file,
      count,
      bytes,
      ({ id, question, answer }) => `${id},"${question}",${answer}`,
      'id,question,answer\n',
    ),
  parquet(file, count, bytes) {
    const rows = [...questions(count, bytes)];
    const columns = (['id', 'question', 'answer'] as const).map((name) => ({
      name,
      data: rows.map((row) => row[name]),
    }));
    writeFileSync(file, new Uint8Array(parquetWriteBuffer({ columnData: columns })));
  },
  db(file, count, bytes) {
    const database = new sqlite.Database(file);
    database.exec('create table tasks (id text, question text, answer integer); begin');
    const insert = database.prepare('insert into tasks values (?, ?, ?)');
    for (const { id, question, answer } of questions(count, bytes)) insert.run([id, question, answer]);
    insert.finalize();
    database.exec('commit');
    database.close();
  },
};

async function writeLines(
  file: string,
  count: number,
  bytes: number,
  write: (row: Question) => string,
  head = '',
): Promise<void> {
  const stream = createWriteStream(file);
  stream.write(head);
  for (const row of questions(count, bytes)) if (!stream.write(`${write(row)}\n`)) await once(stream, 'drain');
  stream.end();
  await once(stream, 'close');
}
