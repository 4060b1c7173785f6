/** A domain's tables in memory: rows by id, references between them, and a hash of all of them. */
import { createHash } from 'node:crypto';
import type { Check, Domain, Effect, Path, Template, Value } from './domain.ts';

export type Row = Record<string, Value>;

/** A row under a name. Whatever changes its table is seen through it. */
export interface Named {
  readonly table: string;
  readonly row: Row;
}

export type Names = Readonly<Record<string, Named | Value>>;

export class Database {
  readonly #tables: Domain['tables'];
  readonly #rows: ReadonlyMap<string, Map<Value, Row>>;

  constructor(tables: Domain['tables']) {
    this.#tables = tables;
    this.#rows = new Map(Object.keys(tables).map((table) => [table, new Map()]));
  }

  rows(table: string): Row[] {
    const rows = this.#rows.get(table);
    if (rows === undefined) throw new Error(`the domain has no table ${table}`);
    return [...rows.values()];
  }

  get(table: string, id: Value): Named | null {
    const row = this.#rows.get(table)?.get(id);
    return row === undefined ? null : { table, row };
  }

  insert(table: string, row: Row & { id: Value }): void {
    this.#rows.get(table)!.set(row.id, row);
  }

  /** The value at a place. */
  read(path: Path, names: Names): Value {
    const found = this.#follow(path, names);
    return typeof found === 'object' ? found.row['id']! : found;
  }

  fill(template: Template, names: Names): Value {
    const [, alone] = /^\{([\w.]+)\}$/.exec(template) ?? [];
    if (alone !== undefined) return this.read(alone, names);
    return template.replaceAll(/\{([\w.]+)\}/g, (_, path: string) => String(this.read(path, names)));
  }

  /** Null if it holds; otherwise what is wrong. */
  complaint(check: Check, names: Names): string | null {
    return this.#mismatch(check, names) ?? outOfRange(check, this.read(check.at, names));
  }

  #mismatch({ at, is, not = [], equals, differs }: Check, names: Names): string | null {
    const value = this.read(at, names);
    if (is !== undefined && !is.includes(value)) return `${at} must be ${is.join(' or ')}, it is ${value}`;
    if (not.includes(value)) return `${at} must not be ${value}`;
    if (equals !== undefined && value !== this.read(equals, names)) return `${at} must be that of ${equals}`;
    return differs !== undefined && value === this.read(differs, names) ? `${at} must not be that of ${differs}` : null;
  }

  apply(effect: Effect, names: Names): void {
    if ('insert' in effect) return this.#insertNew(effect.insert, effect.row, names);
    const path = 'set' in effect ? effect.set : effect.to;
    const [, owner = '', column = ''] = /^(.+)\.(\w+)$/.exec(path) ?? [];
    const target = this.#follow(owner, names);
    if (typeof target !== 'object') throw new Error(`${path} is no column of a row`);
    const { row } = target;
    row[column] = 'set' in effect ? this.fill(effect.to, names) : Number(row[column]) + effect.add;
  }

  #insertNew(table: string, columns: Readonly<Record<string, Template>>, names: Names): void {
    const filled = Object.entries(columns).map(([column, template]) => [column, this.fill(template, names)] as const);
    const id = this.#tables[table]!.id.replace(/[#@]+/, String(this.rows(table).length + 1));
    this.insert(table, { id, ...Object.fromEntries(filled) });
  }

  #follow(path: Path, names: Names): Named | Value {
    const [head = '', ...columns] = path.split('.');
    let place = names[head];
    for (const column of columns) place = typeof place === 'object' ? this.#column(place, column) : undefined;
    if (place === undefined) throw new Error(`the domain names ${path}, which does not exist`);
    return place;
  }

  #column({ table, row }: Named, column: string): Named | Value | undefined {
    const drawn = this.#tables[table]?.columns[column];
    const value = row[column];
    return drawn !== undefined && 'ref' in drawn && value !== undefined ? this.get(drawn.ref, value)! : value;
  }

  copy(): Database {
    const copied = new Database(this.#tables);
    for (const [table, rows] of this.#rows) for (const [id, row] of rows) copied.#rows.get(table)!.set(id, { ...row });
    return copied;
  }

  /** The same for the same rows, in whatever order they were written. */
  digest(): string {
    const tables = [...this.#rows].map(([table, rows]) => [
      table,
      [...rows.values()].map((row) => JSON.stringify(Object.entries(row).toSorted(byName))).toSorted(),
    ]);
    return createHash('sha256').update(JSON.stringify(tables)).digest('hex');
  }
}

function byName([left]: [string, Value], [right]: [string, Value]): number {
  return left < right ? -1 : 1;
}

function outOfRange({ at, atLeast = -Infinity, atMost = Infinity }: Check, value: Value): string | null {
  if (Number(value) < atLeast) return `${at} must be at least ${atLeast}, it is ${value}`;
  return Number(value) > atMost ? `${at} must be at most ${atMost}, it is ${value}` : null;
}
