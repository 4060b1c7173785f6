/**
 * A run's metrics as a CSV file: a line for each step and each evaluation. The number of a row is the number of its
 * line, so that a repeated delivery replaces its own lines, and a line that a crash cut off.
 */
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { CsvSettings } from '../../core/contract/outbound.ts';
import { TemperError } from '../../core/contract/failures.ts';
import type { DeliveryRow, Target } from '../target.ts';
import { metricsOfRow, STEP_METRIC } from './metric-names.ts';
import type { TrackerPlace } from './tracker-run.ts';

type Cells = Readonly<Record<string, string>>;

const FIRST_COLUMNS = ['kind', 'branch', 'step', 'time'];

export function createCsvTracker({ name, folder }: CsvSettings, { project }: Pick<TrackerPlace, 'project'>): Target {
  const fileOf = (run: string): string => join(resolve(project, folder), `${run}.csv`);
  return {
    name,
    batch: 500,
    onRollback: 'continue',
    async begin({ run }) {
      await explained(fileOf(run.run), (file) => mkdir(dirname(file), { recursive: true }));
      return {};
    },
    async deliver({ run, rows: kept }, rows) {
      const lines = rows.map((row) => cellsOf(row, metricsOfRow(row)));
      await explained(fileOf(run.run), (file) => writeLines(file, kept, lines));
    },
    end: () => Promise.resolve(),
  };
}

function cellsOf(row: DeliveryRow, metrics: Readonly<Record<string, number>>): Cells {
  const { [STEP_METRIC]: _step, ...others } = metrics;
  return {
    kind: row.kind,
    branch: String(row.branch),
    step: String(row.step),
    time: new Date(row.at).toISOString(),
    ...Object.fromEntries(Object.entries(others).map(([column, value]) => [quoted(column), String(value)])),
  };
}

/** Keeps the header and the first `kept` lines. A new column makes a new file, which takes the place of the old one. */
async function writeLines(file: string, kept: number, lines: readonly Cells[]): Promise<void> {
  const text = await readText(file);
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const [header = '', ...before] = whole.split('\n').slice(0, kept + 1);
  const known = header === '' ? FIRST_COLUMNS : splitHeader(header);
  const columns = [...new Set([...known, ...lines.flatMap((cells) => Object.keys(cells))])];
  const added = lines.map((cells) => `${columns.map((column) => cells[column] ?? '').join(',')}\n`).join('');
  if (columns.length === known.length && header !== '')
    return overwrite(file, Buffer.byteLength([header, ...before, ''].join('\n')), added);
  const empty = ','.repeat(columns.length - known.length);
  const old = before.filter((line) => line !== '').map((line) => `${line}${empty}\n`);
  await overwrite(`${file}.tmp`, 0, [`${columns.join(',')}\n`, ...old, added].join(''));
  await rename(`${file}.tmp`, file);
}

async function overwrite(file: string, offset: number, text: string): Promise<void> {
  const handle = await open(file, offset === 0 ? 'w' : 'r+');
  try {
    await handle.truncate(offset);
    await handle.write(text, offset);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

/** A name with a comma or a quote is quoted; names have no line breaks. */
function quoted(column: string): string {
  const text = column.replaceAll(/\s+/g, ' ');
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function splitHeader(header: string): string[] {
  return header.match(/"(?:[^"]|"")*"|[^,]+/g) ?? [];
}

async function explained<T>(file: string, write: (file: string) => Promise<T>): Promise<T> {
  try {
    return await write(file);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TemperError('TargetUnavailable', `the file of the csv tracker cannot be written: ${reason}`, { cause });
  }
}
