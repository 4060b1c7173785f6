/** A domain of customer service, all of it data: tables, tools, a policy, and what customers want. It can be written as JSON. */
export interface Domain {
  readonly name: string;
  /** The agent's task, and the rules that the tools do not enforce. */
  readonly policy: string;
  /** A column may refer to an earlier table, so their order counts. */
  readonly tables: Readonly<Record<string, Table>>;
  readonly tools: Readonly<Record<string, ServiceTool>>;
  readonly situations: readonly Situation[];
}

export type Value = string | number;

/**
 * A place: the name of an argument or of a drawn row, then columns. `line.order.status` follows the reference from a
 * line to its order. A name alone is the value of an argument, or the id of a row.
 */
export type Path = string;

/** A text with places: `Order {order} costs {order.total} euros.` If it is one place alone, it stands for its value. */
export type Template = string;

export interface Table {
  /** Rows of a new database. */
  readonly rows: number;
  /** How ids look: `#` is a digit, `@` a capital letter, anything else stands for itself. Rows of an effect are numbered. */
  readonly id: string;
  readonly columns: Readonly<Record<string, Column>>;
}

/** How a value is drawn. A reference is the id of a row. */
export type Column =
  | { readonly oneOf: readonly Value[] }
  | { readonly between: readonly [low: number, high: number] }
  | { readonly ref: string }
  /** Made of the columns before it. */
  | { readonly text: Template };

/** Everything that it names holds. */
export interface Check {
  readonly at: Path;
  readonly is?: readonly Value[];
  readonly not?: readonly Value[];
  readonly equals?: Path;
  readonly differs?: Path;
  readonly atLeast?: number;
  readonly atMost?: number;
}

export type Effect =
  | { readonly set: Path; readonly to: Template }
  | { readonly add: number; readonly to: Path }
  | { readonly insert: string; readonly row: Readonly<Record<string, Template>> };

export type Argument =
  /** The id of a row of this table. */
  | { readonly row: string }
  | { readonly oneOf: readonly [string, ...string[]] }
  | { readonly between: readonly [low: number, high: number] }
  | { readonly text: string };

/** It finds rows, shows one, or changes the database: whatever it names, in this order. */
export interface ServiceTool {
  readonly description: string;
  readonly arguments: Readonly<Record<string, Argument>>;
  /** Rows of this table whose columns have the values of the arguments of these names; case does not matter. */
  readonly find?: string;
  /** The row of this argument. */
  readonly show?: string;
  /** Rows that are shown with it, and the column with which they refer to it. */
  readonly with?: { readonly table: string; readonly by: string };
  /** Rules that the tool enforces. */
  readonly checks?: readonly Check[];
  readonly effects?: readonly Effect[];
  /** The conversation is over. */
  readonly ends?: boolean;
}

/** Somebody calls: who that is, what they want, and what a perfect agent does. */
export interface Situation {
  readonly name: string;
  /** Rows by the name under which templates know them. A check may name rows that were drawn before, and its own. */
  readonly draw: Readonly<Record<string, Draw>>;
  /** The customer's first words; a scripted customer says the others after each answer of the agent, and hangs up. */
  readonly says: readonly [Template, ...Template[]];
  /** Instructions of a model that plays the customer. */
  readonly wants: Template;
  /** Calls that lead to the database that is expected in the end. */
  readonly calls: readonly Call[];
  /** Facts that the agent must have told the customer. */
  readonly statements: readonly Template[];
}

export interface Draw {
  readonly from: string;
  readonly where?: readonly Check[];
}

export interface Call {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, Template | number>>;
}
