/** A service desk: a domain's tools on one database. A call that a tool refuses changes nothing. */
import type { Database, Named, Names, Row } from './database.ts';
import type { Argument, Domain, ServiceTool, Value } from './domain.ts';

const MAX_FOUND = 20;

type Shown = Readonly<Record<string, unknown>>;

export class Desk {
  readonly #domain: Domain;
  readonly #database: Database;

  constructor(domain: Domain, database: Database) {
    this.#domain = domain;
    this.#database = database;
  }

  /** Throws what the caller should be told. */
  call(name: string, args: Readonly<Record<string, Value>>): Shown | Shown[] | string {
    const tool = this.#domain.tools[name];
    if (tool === undefined) throw new Error(`there is no tool ${name}`);
    const names = this.#namesOf(tool, args);
    for (const check of tool.checks ?? []) {
      const complaint = this.#database.complaint(check, names);
      if (complaint !== null) throw new Error(complaint);
    }
    for (const effect of tool.effects ?? []) this.#database.apply(effect, names);
    if (tool.find !== undefined) return this.#find(tool.find, args);
    return tool.show === undefined ? 'done' : this.#show(names[tool.show] as Named, tool);
  }

  digest(): string {
    return this.#database.digest();
  }

  #namesOf(tool: ServiceTool, args: Readonly<Record<string, Value>>): Names {
    const named = Object.entries(tool.arguments).map(([name, argument]) => {
      const value = args[name];
      if (value === undefined) throw new Error(`${name} is missing`);
      return [name, this.#name(argument, value, name)] as const;
    });
    return Object.fromEntries(named);
  }

  #name(argument: Argument, value: Value, name: string): Named | Value {
    if (!('row' in argument)) return value;
    const found = this.#database.get(argument.row, value);
    if (found === null) throw new Error(`there is no ${name} ${value}`);
    return found;
  }

  #find(table: string, args: Readonly<Record<string, Value>>): Shown[] {
    const wanted = Object.entries(args).map(([column, value]) => [column, fold(value)] as const);
    const found = this.#database
      .rows(table)
      .filter((row) => wanted.every(([column, value]) => fold(row[column]) === value));
    return found.slice(0, MAX_FOUND);
  }

  /** The rows that belong to it come with what they refer to. */
  #show({ row }: Named, tool: ServiceTool): Shown {
    if (tool.with === undefined) return row;
    const { table, by } = tool.with;
    const rows = this.#database.rows(table).filter((each) => each[by] === row['id']);
    return { ...row, [table]: rows.map((each) => this.#withReferences(table, each, by)) };
  }

  #withReferences(table: string, row: Row, except: string): Shown {
    const columns = this.#domain.tables[table]!.columns;
    const shown = Object.entries(row).filter(([name]) => name !== except);
    return Object.fromEntries(
      shown.map(([name, value]) => {
        const column = columns[name];
        return [name, column !== undefined && 'ref' in column ? this.#database.get(column.ref, value)!.row : value];
      }),
    );
  }
}

function fold(value: Value | undefined): string {
  return String(value).normalize('NFKC').trim().toLowerCase();
}
