/** Input, place and result of the stages of `temper scenarios`. */
import { sha256Hex } from '../../core/text/hashes.ts';
import type { EngineAddress } from '../../play/connections/engine-connection.ts';
import type { HostedLedger, PricedModel } from '../../play/hosted/hosted-ledger.ts';
import type { Store } from '../../store/store.ts';
import type { Player } from '../players/players.ts';
import type { ScenarioOrigin } from './origin.ts';

/** Source of the scenarios, and how they are tried. */
export interface MakePlan {
  readonly origin: ScenarioOrigin;
  readonly instructions: string | null;
  /** Training and held-out scenarios together. */
  readonly count: number;
  readonly heldOut: number;
  /** Model that writes scenarios, and decides whether an attempt solved one. */
  readonly model: PricedModel;
  /** Model that tries them; may be the same one, or a model of the local stack. */
  readonly tryWith: Player;
  /** Attempts at each scenario; 0: they are not tried. */
  readonly attempts: number;
  /** Answers of the model in one attempt; with an MCP server alone. */
  readonly maxTurns: number;
  readonly seed: number;
}

/** Store, folder and process of the stages. */
export interface MakeWorld {
  readonly ledger: HostedLedger;
  readonly store: Store;
  /** Folder in the store; see `LedgerOptions`. */
  readonly work: string;
  /** Folder in which MCP servers are started. */
  readonly folder: string;
  /** Engine of the local stack; null if `tryWith` is hosted. */
  readonly engine: EngineAddress | null;
  readonly concurrency: number;
  readonly signal: AbortSignal;
  readonly tell: (line: string) => void;
}

/** A generated scenario, as its file holds it. */
export interface ScenarioRow {
  /** From the text alone. */
  readonly id: string;
  readonly task: string;
  /** 1 (easiest) to 5. */
  readonly difficulty: number;
}

const ID_CHARACTERS = 12;

export function toRow(task: string, difficulty: number): ScenarioRow {
  return { id: sha256Hex(task).slice(0, ID_CHARACTERS), task, difficulty };
}

export interface MadeScenario extends ScenarioRow {
  /** Share of the attempts that solved it; null if it was not tried. */
  readonly solvedRate: number | null;
  /** Reason of the last attempt that did not; null if all did. */
  readonly explanation: string | null;
}

export interface MadeScenarios {
  readonly train: readonly MadeScenario[];
  readonly heldOut: readonly MadeScenario[];
  /** Never solved. */
  readonly infeasible: readonly MadeScenario[];
  /** Always solved, and left out because there were enough others. */
  readonly tooEasy: readonly MadeScenario[];
  readonly duplicates: number;
  /** For people: fewer than asked for, or some that are always solved. */
  readonly notes: readonly string[];
}
