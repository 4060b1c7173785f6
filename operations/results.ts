/** What operations answer with, apart from the work that makes it: a script's compiler reads these types alone. */

export interface RolledBack {
  readonly run: string;
  readonly kept: number;
  /** Last finished step. */
  readonly undone: number;
  readonly first: boolean;
  /** True if the run had ended and its workflow was started again. */
  readonly isAgain: boolean;
}

export interface Period {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}
