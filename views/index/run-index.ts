/** The index of one run: reads what is new of it, and searches what it has. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import pLimit from 'p-limit';
import { isUnreadable } from '../../core/contract/failures.ts';
import { tryFileLock } from '../../store/bytes/file-lock.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import { runKey, evalRolloutsKey, evalTimesKey, groupTimesKey, rolloutsKey } from '../../store/layout.ts';
import { readAllChanges } from '../../store/records/runs/lineage.ts';
import { readStored, RunFileSchema, TimesFileSchema } from '../../store/records/file-schemas.ts';
import type { Store } from '../../store/store.ts';
import type { AttemptQuery } from '../api/attempt-query.ts';
import type { AttemptsView, IndexProgress, AttemptRow } from '../api/attempt-views.ts';
import { findUnread, type Unread, type UnreadGroup } from './find-groups.ts';
import { groupKey, IndexFiles, IndexTaken, type IndexWriter } from './index-files.ts';
import { searchFiles } from './search-files.ts';
import type { RunConfig, SettingChange } from '../../core/contract/contract.ts';
import { readVerdict } from '../../store/records/groups/group-files.ts';
import { readStepVerdict } from '../../store/records/groups/step-verdict.ts';
import { decodeWithoutNumbers, type Rollouts } from '../../store/records/groups/trajectories.ts';
import { attemptRows, groupUse } from '../rows/attempt-row.ts';
import { searchText, type SearchText } from './attempt-text.ts';

/** Whole groups in memory; reading and unpacking them uses other threads. */
const READ_AT_ONCE = 2;
const LOCK_POLL_MS = 250;

export class RunIndex {
  readonly #store: Store;
  readonly #run: string;
  readonly #files: IndexFiles;
  readonly #identity: string;
  /** Groups whose files are damaged: not tried again by this process. */
  readonly #unreadable = new Set<string>();
  #waiting = 0;
  #isComplete = false;
  #updating: Promise<void> | null = null;
  #isClosed = false;

  constructor(store: Store, run: string, folder: string, identity: string) {
    this.#store = store;
    this.#run = run;
    this.#identity = identity;
    this.#files = new IndexFiles(folder, identity);
  }

  /** Opens the index of a run as it is named now. Null: there is no such run. */
  static async open(store: Store, run: string, folder: string): Promise<RunIndex | null> {
    const bytes = await store.read(runKey(run));
    if (bytes === null) return null;
    const index = new RunIndex(store, run, folder, hashBytes(bytes));
    await index.#files.refresh();
    return index;
  }

  /** False if the run was deleted, or another one has its name by now. */
  async isCurrent(): Promise<boolean> {
    const bytes = await this.#store.read(runKey(this.#run));
    return bytes !== null && hashBytes(bytes) === this.#identity;
  }

  progress(): IndexProgress {
    const indexed = this.#files.groups.size;
    return { indexed, known: indexed + this.#waiting, isComplete: this.#isComplete };
  }

  async search(query: AttemptQuery): Promise<AttemptsView> {
    await this.#files.refresh();
    return { ...(await searchFiles(this.#files, query)), index: this.progress() };
  }

  /** A call during an update waits for that one, and then looks again: the store may have more by then. */
  async update(): Promise<void> {
    const before = this.#updating ?? Promise.resolve();
    const next = before.catch(() => undefined).then(() => this.#update());
    this.#updating = next;
    try {
      await next;
    } finally {
      if (this.#updating === next) this.#updating = null;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#updating?.catch(() => undefined);
  }

  async #update(): Promise<void> {
    const unread = await this.#find();
    if (unread.groups.length === 0 && unread.settled.length === 0) {
      this.#isComplete = true;
      return;
    }
    const release = await this.#lock();
    if (release === null) return;
    try {
      await this.#read(await this.#find());
    } finally {
      release();
    }
  }

  async #find(): Promise<Unread> {
    await this.#files.refresh();
    const unread = await findUnread(this.#store, this.#run, {
      has: (group) => this.#has(group),
      isSettled: (branch, step) => this.#files.isSettled(branch, step),
    });
    this.#waiting = unread.groups.length;
    this.#isComplete = unread.groups.length === 0;
    return unread;
  }

  #has({ branch, step, group, isJudged }: UnreadGroup): boolean {
    const key = groupKey(branch, step, group);
    const known = this.#files.groups.get(key);
    return this.#unreadable.has(key) || (known !== undefined && (known.isJudged || !isJudged));
  }

  /** Waits for another process that writes the index, and shows what it has written. Null: closed meanwhile. */
  async #lock(): Promise<(() => void) | null> {
    const file = this.#files.path('lock');
    await mkdir(dirname(file), { recursive: true });
    while (!this.#isClosed) {
      const release = tryFileLock(file);
      if (release !== null) return release;
      await setTimeout(LOCK_POLL_MS);
      await this.#files.refresh();
    }
    return null;
  }

  async #read(unread: Unread): Promise<void> {
    const settings = await this.#readSettings();
    if (settings === null) return;
    const writer = await this.#files.openWriter();
    try {
      await this.#readGroups(settings, writer, unread.groups);
      if (!this.#isClosed) for (const { branch, step } of unread.settled) await writer.settle(branch, step);
      this.#isComplete = !this.#isClosed;
    } catch (error) {
      // The next update begins with what the files are by then.
      if (!(error instanceof IndexTaken)) throw error;
    } finally {
      await writer.close();
    }
  }

  async #readSettings(): Promise<RunSettings | null> {
    const file = await readStored(this.#store, runKey(this.#run), RunFileSchema);
    if (file === null) return null;
    const { changes } = await readAllChanges(this.#store, this.#run);
    return { run: this.#run, config: file.config, changes };
  }

  async #readGroups(settings: RunSettings, writer: IndexWriter, groups: readonly UnreadGroup[]): Promise<void> {
    const limit = pLimit(READ_AT_ONCE);
    // Appends one after the other, while the next groups are read.
    let appended = Promise.resolve();
    await limit.map(groups, async (group) => {
      if (this.#isClosed) return;
      const read = await readForIndex(this.#store, settings, group).catch((error: unknown) => {
        if (!isUnreadable(error)) throw error;
        this.#unreadable.add(groupKey(group.branch, group.step, group.group));
        return null;
      });
      if (read !== null) appended = appended.then(() => writer.appendGroup(group, read.rows, read.words));
      await appended;
      this.#waiting = Math.max(0, this.#waiting - 1);
      // Views are answered between two groups.
      await setImmediate();
    });
  }
}

interface AttemptsForIndex {
  readonly rows: readonly AttemptRow[];
  readonly words: readonly SearchText[];
}

interface RunSettings {
  readonly run: string;
  readonly config: RunConfig;
  readonly changes: readonly SettingChange[];
}

/** Null if it is gone: the run was deleted meanwhile. */
async function readForIndex(store: Store, of: RunSettings, unread: UnreadGroup): Promise<AttemptsForIndex | null> {
  const place = { run: of.run, branch: unread.branch, step: unread.step };
  const { group } = unread;
  if (group === null) {
    const [rollouts, times] = await Promise.all([
      readWords(store, evalRolloutsKey(place)),
      readStored(store, evalTimesKey(place), TimesFileSchema),
    ]);
    if (rollouts === null) return null;
    const files = { place, group, rollouts, judged: null, times, use: 'eval' as const };
    return { rows: attemptRows(files), words: rollouts.attempts.map(searchText) };
  }
  const at = { ...place, group };
  const [rollouts, verdict, times, decided] = await Promise.all([
    readWords(store, rolloutsKey(at)),
    unread.isJudged ? readVerdict(store, at) : null,
    readStored(store, groupTimesKey(at), TimesFileSchema),
    readStepVerdict(store, place),
  ]);
  if (rollouts === null) return null;
  const said = decided?.groups.find((each) => each.group === group && (each.step ?? place.step) === place.step);
  const use = said?.use ?? groupUse(of, at, rollouts, verdict);
  const files = { place, group, rollouts, judged: verdict?.judged ?? null, times, use };
  return { rows: attemptRows(files), words: rollouts.attempts.map(searchText) };
}

async function readWords(store: Store, key: string): Promise<Rollouts | null> {
  const bytes = await store.read(key);
  return bytes && decodeWithoutNumbers(bytes, key);
}
