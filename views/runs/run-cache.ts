/** The runs of a store in memory: unchanged files are parsed once, curves of the runs looked at last are kept. */
import type { RunState, StepSummary } from '../../core/contract/contract.ts';
import { decodeJson } from '../../store/bytes/json.ts';
import { runKey, stateKey } from '../../store/layout.ts';
import { extendCurve, readCurve } from '../../store/records/runs/curve.ts';
import { checkRunOf, parseStored, RunFileSchema } from '../../store/records/file-schemas.ts';
import { parseState, renamed, type RunFile, listRuns } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import { NotFound, type ViewContext } from '../context/context.ts';

/** A run without its curve. */
export interface RunHead {
  readonly run: string;
  readonly file: RunFile;
  /** Null before the first record of the run's workflow. */
  readonly state: RunState | null;
}

interface KnownHead {
  readonly fileBytes: Uint8Array;
  readonly file: RunFile;
  readonly stateBytes: Uint8Array | null;
  readonly state: RunState | null;
}

interface KnownCurve {
  readonly branch: number;
  readonly step: number;
  readonly adapterSha256: string | null;
  readonly steps: readonly StepSummary[];
}

/** A curve of 2,000 steps takes some megabytes. */
const KEPT_CURVES = 4;

export class RunCache {
  readonly #store: Store;
  readonly #heads = new Map<string, KnownHead>();
  readonly #curves = new Map<string, KnownCurve>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Null for a name that no run of the store has. */
  async readHead(run: string): Promise<RunHead | null> {
    const [fileBytes, stateBytes] = await Promise.all([this.#store.read(runKey(run)), this.#store.read(stateKey(run))]);
    if (fileBytes === null) {
      this.#forget(run);
      return null;
    }
    const known = this.#heads.get(run);
    const isSame = known !== undefined && areEqual(known.fileBytes, fileBytes);
    // Another run of the same name, after the first one was deleted.
    if (known !== undefined && !isSame) this.#forget(run);
    const file = isSame ? known.file : parseRunFile(fileBytes, run);
    const isSameState = isSame && areEqual(known.stateBytes, stateBytes);
    const state = isSameState ? known.state : readStateBytes(stateBytes, run);
    this.#heads.set(run, { fileBytes, file, stateBytes, state });
    return { run, file, state };
  }

  /** The run as it was read last, or else as it is: for what of it never changes. */
  async knownHead(run: string): Promise<RunHead | null> {
    const known = this.#heads.get(run);
    return known === undefined ? this.readHead(run) : { run, file: known.file, state: known.state };
  }

  /** State that the last reader of the run was given; undefined if nobody has read it. */
  lastState(run: string): RunState | null | undefined {
    return this.#heads.get(run)?.state;
  }

  /** Steps of the run's newest branch with all before it. */
  async readSteps({ run, state }: RunHead): Promise<readonly StepSummary[]> {
    const known = this.#curves.get(run);
    const steps = await this.#steps(run, state, known);
    this.#curves.delete(run);
    if (state !== null) this.#curves.set(run, { ...positionOf(state), steps });
    const [oldest] = this.#curves.keys();
    if (this.#curves.size > KEPT_CURVES) this.#curves.delete(oldest!);
    return steps;
  }

  async #steps(run: string, state: RunState | null, known?: KnownCurve): Promise<readonly StepSummary[]> {
    if (state === null || known?.branch !== state.branch || known.step > state.step)
      return readCurve(this.#store, run, state);
    if (known.step === state.step && known.adapterSha256 === state.adapterSha256) return known.steps;
    return extendCurve(this.#store, run, known.steps, state);
  }

  #forget(run: string): void {
    this.#heads.delete(run);
    this.#curves.delete(run);
  }
}

const caches = new WeakMap<Store, RunCache>();

/** One for each store that is open: views share it. */
export function runCacheOf(store: Store): RunCache {
  const cache = caches.get(store) ?? new RunCache(store);
  caches.set(store, cache);
  return cache;
}

function positionOf({ branch, step, adapterSha256 }: RunState): Omit<KnownCurve, 'steps'> {
  return { branch, step, adapterSha256 };
}

function parseRunFile(bytes: Uint8Array, run: string): RunFile {
  const key = runKey(run);
  const file = parseStored(RunFileSchema, decodeJson(bytes, key), key);
  checkRunOf(file.config, run, key, renamed(run, file.config.run));
  return file;
}

function readStateBytes(bytes: Uint8Array | null, run: string): RunState | null {
  return bytes === null ? null : parseState(decodeJson(bytes, stateKey(run)), run);
}

function areEqual(left: Uint8Array | null, right: Uint8Array | null): boolean {
  if (left === null || right === null) return left === right;
  return Buffer.compare(left, right) === 0;
}

/** The run, or NotFound with the names of those there are. */
export async function requireHead({ store }: Pick<ViewContext, 'store'>, run: string): Promise<RunHead> {
  const head = NAME_PATTERN.test(run) ? await runCacheOf(store).readHead(run) : null;
  if (head !== null) return head;
  const known = (await listRuns(store)).join(', ') || 'none';
  throw new NotFound(`the store ${store.uri} has no run ${run}; its runs: ${known}`);
}
