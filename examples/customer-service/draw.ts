/** New databases, and rows in them that fit a situation. */
import { between, pick, shuffle, type Random } from './random.ts';
import { Database, type Named, type Names, type Row } from './database.ts';
import type { Column, Domain, Situation, Table, Value } from './domain.ts';

/** About a fifth of all ids is held out. */
const HELD_OUT_EVERY = 5;
const DIGITS = '0123456789'.split('');
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('');
/** Databases that are tried for one that has the rows of a situation. */
const MAX_DATABASES = 100;

export interface Drawn {
  readonly database: Database;
  readonly names: Readonly<Record<string, Named>>;
}

export function drawSituation(domain: Domain, situation: Situation, random: Random, isExam: boolean): Drawn {
  for (let count = 0; count < MAX_DATABASES; count++) {
    const database = drawDatabase(domain.tables, random, isExam);
    const names = drawRows(database, situation, random);
    if (names !== null) return { database, names };
  }
  throw new Error(`${domain.name} must have rows for ${situation.name}; ${MAX_DATABASES} databases had none`);
}

function drawDatabase(tables: Domain['tables'], random: Random, isExam: boolean): Database {
  const database = new Database(tables);
  for (const [name, table] of Object.entries(tables))
    for (const id of drawIds(table, random, isExam)) {
      const row: Row & { id: Value } = { id };
      for (const [column, drawn] of Object.entries(table.columns))
        row[column] = drawValue(drawn, database, row, random);
      database.insert(name, row);
    }
  return database;
}

function drawIds({ rows, id: pattern }: Table, random: Random, isExam: boolean): string[] {
  const ids = new Set<string>();
  while (ids.size < rows) {
    const id = pattern.replaceAll(/[#@]/g, (place) => pick(place === '#' ? DIGITS : LETTERS, random));
    if (isHeldOut(id) === isExam) ids.add(id);
  }
  return [...ids];
}

/** An id is in training or held out, for good. */
export function isHeldOut(id: string): boolean {
  const codes = Array.from(id, (character) => character.codePointAt(0)!);
  return codes.reduce((sum, code) => sum + code, 0) % HELD_OUT_EVERY === 0;
}

function drawValue(column: Column, database: Database, row: Row, random: Random): Value {
  if ('oneOf' in column) return pick(column.oneOf, random);
  if ('between' in column) return between(random, ...column.between);
  if ('ref' in column) return pick(database.rows(column.ref), random)['id']!;
  return database.fill(column.text, row);
}

/** Null if one of them has no row that fits. */
function drawRows(database: Database, { draw }: Situation, random: Random): Drawn['names'] | null {
  const names: Record<string, Named> = {};
  for (const [name, { from, where = [] }] of Object.entries(draw)) {
    const fits = (row: Row): boolean => {
      const known: Names = { ...names, [name]: { table: from, row } };
      return where.every((check) => database.complaint(check, known) === null);
    };
    const found = shuffle(database.rows(from), random).find(fits);
    if (found === undefined) return null;
    names[name] = { table: from, row: found };
  }
  return names;
}
