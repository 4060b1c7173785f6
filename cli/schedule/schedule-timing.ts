/** When a schedule fires, as a person writes it. */
import { badConfig } from '../../core/contract/failures.ts';

const UNITS_MS: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** `30m`, `6h`, `1d`, `2w` in milliseconds. */
export function parseInterval(text: string): number {
  const [, count = '', unit = ''] = /^([1-9]\d{0,5})([mhdw])$/.exec(text) ?? [];
  const unitMs = UNITS_MS[unit];
  if (unitMs !== undefined) return Number(count) * unitMs;
  throw badConfig(
    `an interval must be a whole number of m, h, d or w (minutes, hours, days, weeks), got ${JSON.stringify(text)}; write it like 6h or 1d`,
  );
}

interface CronField {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Words for its values from `min` on. */
  readonly words: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const CRON_FIELDS: readonly CronField[] = [
  { name: 'minute', min: 0, max: 59, words: [] },
  { name: 'hour', min: 0, max: 23, words: [] },
  { name: 'day of the month', min: 1, max: 31, words: [] },
  { name: 'month', min: 1, max: 12, words: MONTHS },
  { name: 'day of the week', min: 0, max: 7, words: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
];

/** A cron line of five fields, as it was written with single spaces. Temporal reads it; what it would refuse is refused here. */
export function parseCron(text: string): string {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== CRON_FIELDS.length) {
    throw badConfig(
      `a cron line must have five fields (minute, hour, day of the month, month, day of the week), got ${JSON.stringify(text)}; write it like '0 3 * * *'`,
    );
  }
  const wrong = CRON_FIELDS.findIndex((field, index) => !isCronField(fields[index] ?? '', field));
  const field = CRON_FIELDS[wrong];
  if (field === undefined) return fields.join(' ');
  throw badConfig(
    `the cron line's ${field.name} must be *, or values from ${field.min} to ${field.max} with , - and /, got ${JSON.stringify(fields[wrong])}; write it like '0 3 * * *'`,
  );
}

function isCronField(text: string, field: CronField): boolean {
  return text.split(',').every((part) => isCronPart(part, field));
}

/** `*`, `7`, `mon-fri`, each also with a step: `0-30/10`. */
function isCronPart(part: string, field: CronField): boolean {
  const [range = '', step, ...others] = part.split('/');
  if (others.length > 0 || (step !== undefined && !/^[1-9]\d{0,2}$/.test(step))) return false;
  if (range === '*') return true;
  const ends = range.split('-').map((end) => cronValue(end, field));
  if (ends.length > 2 || ends.includes(null)) return false;
  const [low, high = low] = ends as number[];
  return low! <= high!;
}

function cronValue(text: string, { min, max, words }: CronField): number | null {
  const word = words.indexOf(text.toLowerCase());
  if (word >= 0) return word + min;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : null;
}
