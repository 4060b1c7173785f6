/** Values and services that the stages of `temper auto` share. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Hex } from '../../core/hashes.ts';
import { askStructured, tellOutage, type StructuredQuestion } from '../../play/hosted/ask-structured.ts';
import type { HostedLedger } from '../../play/hosted/hosted-ledger.ts';
import type { Store } from '../../store/store.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { Player } from '../eval/players.ts';
import type { McpOptions } from '../scenarios/origin.ts';
import { stateOf, writeGenerated } from '../scenarios/write-files.ts';
import type { AutoState } from './auto-state.ts';
import type { AutoSettings } from './settings.ts';

export interface AutoWork {
  /** The command's own, with the folder as its project and working folder. */
  readonly environment: CommandEnvironment;
  readonly folder: string;
  /** Name of the agent, and of the first run. */
  readonly name: string;
  readonly settings: AutoSettings;
  readonly state: AutoState;
  readonly store: Store;
  /** Ledger of the stage that is made. */
  readonly ledger: HostedLedger;
  /** The hosted model that writes. */
  readonly writer: HostedPlayer;
  readonly judge: HostedPlayer;
  /** Null for an agent that answers once. */
  readonly mcp: McpOptions | null;
  /** Words of `temper train`, from the command line. */
  readonly trainWords: readonly string[];
}

export type HostedPlayer = Player & { readonly hosted: NonNullable<Player['hosted']> };

/** Asks the model that writes; an equal question under the same label is answered from the ledger. */
export function ask<T>({ ledger, writer, environment }: AutoWork, question: StructuredQuestion<T>): Promise<T> {
  const { signal, output } = environment;
  const outage = tellOutage((line) => output.line(line));
  return askStructured(question, { ledger, model: writer, signal, outage });
}

/** Writes a file of the folder, unless a person has edited it. */
export function writeOwn({ store, folder }: AutoWork, name: string, text: string): Promise<void> {
  return writeGenerated(store, join(folder, name), new TextEncoder().encode(text));
}

export async function isEdited({ store, folder }: Pick<AutoWork, 'store' | 'folder'>, name: string): Promise<boolean> {
  return (await stateOf(store, join(folder, name))) === 'own';
}

/** Hash of the contents of files, in which a missing one is null. */
export async function hashFiles(folder: string, names: readonly string[]): Promise<(string | null)[]> {
  return Promise.all(names.map(async (name) => readFile(join(folder, name)).then(sha256Hex, () => null)));
}
