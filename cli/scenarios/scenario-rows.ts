/** Generated scenarios, as their files hold them. */
import { sha256Hex } from '../../core/hashes.ts';

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
