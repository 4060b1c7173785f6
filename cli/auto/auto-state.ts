/** `auto.json`: what a folder was made for, and which stages are done. Written whole or not at all. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../core/json-text.ts';
import { UsageError } from '../command-line/errors.ts';
import { STATE_FILE } from './file-names.ts';
import { AutoSettings } from './settings.ts';
import { isUpTo, STAGES, type Stage } from './stages.ts';

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const State = z.strictObject({
  /** Names the folder's answers in the store. */
  id: z.string().regex(/^[0-9a-f]{12}$/),
  settings: AutoSettings,
  /** Stages that are done, with the hash of what they were made of. */
  done: z.partialRecord(z.enum(STAGES), Sha256),
  /** How often a stage was done anew on request: answers are kept by it. */
  redone: z.partialRecord(z.enum(STAGES), z.number().int()),
  /** The stage from which a command that has not ended does all anew; null if there is none. */
  redoing: z.enum(STAGES).nullable(),
  /** The run, and the limit that its judge was given; null until it is planned. */
  run: z.strictObject({ name: z.string(), maxCostUsd: z.number().nullable() }).nullable(),
});

type State = z.output<typeof State>;

export class AutoState {
  readonly #file: string;
  #state: State;

  constructor(folder: string, state: State) {
    this.#file = join(folder, STATE_FILE);
    this.#state = state;
  }

  /** Reads again, after another command may have written. */
  reload(): void {
    this.#state = readAutoState(dirname(this.#file)) ?? this.#state;
  }

  get id(): string {
    return this.#state.id;
  }

  get settings(): AutoSettings {
    return this.#state.settings;
  }

  get run(): State['run'] {
    return this.#state.run;
  }

  isDone(stage: Stage): boolean {
    return this.#state.done[stage] !== undefined;
  }

  /** Whether a stage that is done was made of the same. */
  isCurrent(stage: Stage, inputs: string): boolean {
    return this.#state.done[stage] === inputs;
  }

  /** Which time it is that a stage is done: 0, and one more for each time that it or an earlier one was to be done anew. */
  round(stage: Stage): number {
    return STAGES.filter((each) => isUpTo(each, stage)).reduce((sum, each) => sum + (this.#state.redone[each] ?? 0), 0);
  }

  async finish(stage: Stage, inputs: string): Promise<void> {
    await this.#change({ done: { ...this.#state.done, [stage]: inputs } });
  }

  async setSettings(settings: AutoSettings): Promise<void> {
    await this.#change({ settings });
  }

  async setRun(run: State['run']): Promise<void> {
    await this.#change({ run });
  }

  /** Once for a command and those that continue it after a kill. */
  async beginRedo(stage: Stage): Promise<void> {
    if (this.#state.redoing === stage) return;
    const { done, redone, run } = this.#state;
    const kept = Object.entries(done).filter(([name]) => !isUpTo(stage, name as Stage));
    await this.#change({
      redoing: stage,
      redone: { ...redone, [stage]: (redone[stage] ?? 0) + 1 },
      done: Object.fromEntries(kept),
      run: isUpTo(stage, 'run') ? null : run,
    });
  }

  /** The command has come to its end: the next `--redo` is another one. */
  async endRedo(): Promise<void> {
    if (this.#state.redoing !== null) await this.#change({ redoing: null });
  }

  async #change(changed: Partial<State>): Promise<void> {
    this.#state = { ...this.#state, ...changed };
    const temporary = `${this.#file}.${process.pid}.tmp`;
    await mkdir(dirname(this.#file), { recursive: true });
    await writeFile(temporary, `${JSON.stringify(this.#state, null, 2)}\n`);
    await rename(temporary, this.#file);
  }
}

/** Null if the folder has none. */
export function readAutoState(folder: string): State | null {
  const file = join(folder, STATE_FILE);
  if (!existsSync(file)) return null;
  const result = State.safeParse(parseJson(readFileSync(file, 'utf8')) ?? null);
  if (result.success) return result.data;
  const problem = result.error.issues[0];
  const place = problem === undefined || problem.path.length === 0 ? 'it' : problem.path.join('.');
  throw new UsageError(
    `${file} must be as temper auto wrote it, but ${place} is not (${problem?.message ?? ''}); correct it, or choose another folder with --out`,
  );
}

export function newState(settings: AutoSettings): State {
  return { id: randomBytes(6).toString('hex'), settings, done: {}, redone: {}, redoing: null, run: null };
}

/** Folder of the scenarios' attempts in the store; another one once they are made anew. */
export function workOf(state: AutoState): string {
  const round = state.round('scenarios');
  return round === 0 ? `auto-${state.id}` : `auto-${state.id}-${round}`;
}
