/** Rewards from a file or from the command line, as they are given. */
import { existsSync } from 'node:fs';
import { extname, resolve } from 'node:path';

import type { GivenReward } from '../store/records/rewards/given-problems.ts';
import { csvSource } from '../play/sources/csv.ts';
import { jsonLinesSource } from '../play/sources/json-lines.ts';
import { badConfig } from '../core/contract/failures.ts';

/** A reward, and how messages call it. */
export interface PlacedReward {
  readonly given: GivenReward;
  /** `line 3 of rewards.csv`; null for that of the command line. */
  readonly place: string | null;
}

interface Shared {
  readonly by: string | null;
  readonly note: string | null;
}

const COLUMNS = ['run', 'attempt', 'reward', 'by', 'note', 'key'];
const METRIC = 'metric.';

/** Throws for a line that is none; whether the run takes it is not known here. `shared` fills what a line leaves out. */
export async function readRewards(file: string, run: string, cwd: string, shared: Shared): Promise<PlacedReward[]> {
  const isTable = ['.csv', '.tsv'].includes(extname(file).toLowerCase());
  const path = resolve(cwd, file);
  if (!existsSync(path)) throw badConfig(`FILE must name a file, got ${file}, which is not there; correct the path`);
  const source = isTable ? csvSource(path) : jsonLinesSource(path);
  const { rows, placeOf } = source.open();
  const rewards: PlacedReward[] = [];
  const places = new Map<string, string>();
  for await (const { value, number } of rows) {
    const place = placeOf(number);
    const { run: of, ...given } = readLine(value, isTable, place);
    if (of !== undefined && of !== run)
      throw badConfig(`${place} must be of the run ${run}, got ${JSON.stringify(of)}; give each run its own file`);
    const before = places.get(given.attempt);
    if (before !== undefined)
      throw badConfig(`${place} gives the attempt ${given.attempt} again, after ${before}; leave one of them out`);
    places.set(given.attempt, place);
    rewards.push({ given: { ...given, by: given.by ?? shared.by, note: given.note ?? shared.note }, place });
  }
  if (rewards.length === 0)
    throw badConfig(`${file} must have a reward in each line, got none; see temper rewards import --help`);
  return rewards;
}

type Line = GivenReward & { readonly run?: unknown };

function readLine(value: unknown, isTable: boolean, place: string): Line {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badConfig(`${place} must be an object, got ${JSON.stringify(value)}; write { "attempt": …, "reward": … }`);
  const given = Object.fromEntries(Object.entries(value).filter(([, member]) => !isTable || member !== ''));
  const line = isTable ? readRecord(given, place) : given;
  const known = new Set([...COLUMNS, 'metrics']);
  const unknown = Object.keys(line).find((name) => !known.has(name));
  if (unknown !== undefined) {
    const columns = isTable ? [...COLUMNS, `${METRIC}NAME`] : [...known];
    throw badConfig(`${place} may have ${columns.join(', ')}, got ${unknown}; correct its name, or remove it`);
  }
  const missing = ['attempt', 'reward'].find((name) => line[name] === undefined);
  if (missing !== undefined) throw badConfig(`${place} must have attempt and reward, got no ${missing}; add it`);
  return { ...line, attempt: String(line['attempt']) } as Line;
}

/** Values of a table are texts. */
function readRecord(record: Record<string, string>, place: string): Record<string, unknown> {
  const all = Object.entries(record);
  const metrics = all
    .filter(([name]) => name.startsWith(METRIC))
    .map(([name, text]) => {
      return [name.slice(METRIC.length), readFinite(text, `${name} of ${place}`)] as const;
    });
  const others = Object.fromEntries(all.filter(([name]) => !name.startsWith(METRIC)));
  const { reward } = others;
  return {
    ...others,
    ...(reward === undefined ? {} : { reward: readFinite(reward, `the reward of ${place}`) }),
    ...(metrics.length > 0 && { metrics: Object.fromEntries(metrics) }),
  };
}

/** `0.7`, `-1`, `1e-3`: what is no number, or none that is finite, is refused with its name. */
export function readFinite(text: string, name: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw badConfig(`${name} must be a finite number, got ${JSON.stringify(text)}; write for example 0.7`);
}

export function readMetrics(texts: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    texts.map((text) => {
      const [name = '', ...rest] = text.split('=');
      if (rest.length === 0)
        throw badConfig(`--metric must be NAME=VALUE, got ${JSON.stringify(text)}; write --metric tone=0.5`);
      return [name, readFinite(rest.join('='), `--metric ${name}`)];
    }),
  );
}
