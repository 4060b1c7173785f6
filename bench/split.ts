/**
 * Parts of a step's wall time. Seconds of one step, from the files of a run's store and the engine's counters:
 *
 * - engine         forward passes while the step was played: `forward_s` of GET /health, between two commits
 * - trainer        `trainer.load` + `trainer.train` of the step's summary
 * - HTTP           calls × (client's + server's CPU time of a call), as measured by `call` in this very run; as if nothing
 *                  of it ran beside the forward pass or each other, so it is an upper bound, cut where play has no room
 * - store          `trainer.commit` + `trainer.publish` (adapter loaded by the engine included), and what passed between
 *                  the end of the last group's play and its last file in the store (the journal counts as HTTP's client)
 * - waiting        play (first group's begin to last group's end, from `*.times.json`) less engine and HTTP, and
 *                  `trainer.wait`: attempts that wait for each other, gathering of a batch, agents' own code
 * - orchestration  the rest of the step: Temporal's part, activities handed out and results taken back
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';

import type { StepSummary } from '../core/contract/contract.ts';
import { decodeJson } from '../store/bytes/json.ts';
import { groupTimesKey, judgedKey, type StepPlace } from '../store/layout.ts';
import type { Store } from '../store/store.ts';
import { mean } from './bench.ts';

const PARTS = ['engine', 'trainer', 'HTTP', 'store', 'waiting', 'orchestration'] as const;
type Part = (typeof PARTS)[number];
export type Split = Record<Part, number>;

/** Times of one step, from the store. */
export interface StepTimes {
  step: number;
  play: number;
  groupFiles: number;
  load: number;
  train: number;
  wait: number;
  commit: number;
}

/** Engine time of one step, on average. */
export interface EngineShare {
  forwardS: number;
  calls: number;
}

export async function readStepTimes(
  store: Store,
  root: string,
  place: StepPlace,
  summary: StepSummary,
  groups: number,
): Promise<StepTimes> {
  const places = Array.from({ length: groups }, (_, group) => ({ ...place, group }));
  const times = await Promise.all(places.map((group) => readTimes(store, groupTimesKey(group))));
  const endedAt = Math.max(...times.map((time) => time.endedAt));
  // The time of the link that published the verdict, the last file of a group.
  const publishedAt = Math.max(...places.map((group) => statSync(join(root, judgedKey(group))).ctimeMs));
  const seconds = (name: string): number => summary.seconds[name] ?? 0;
  return {
    step: seconds('step'),
    play: (endedAt - Math.min(...times.map((time) => time.startedAt))) / 1000,
    groupFiles: Math.max(0, publishedAt - endedAt) / 1000,
    load: seconds('trainer.load'),
    train: seconds('trainer.train'),
    wait: seconds('trainer.wait'),
    commit: seconds('trainer.commit') + seconds('trainer.publish'),
  };
}

export function splitStep(times: StepTimes, engine: EngineShare, cpuOfCallS: number): Split {
  const { step, play, groupFiles, load, train, wait, commit } = times;
  const room = Math.max(0, play - engine.forwardS);
  const http = Math.min(engine.calls * cpuOfCallS, room);
  const parts = {
    engine: engine.forwardS,
    trainer: load + train,
    HTTP: http,
    store: commit + groupFiles,
    waiting: room - http + wait,
  };
  const known = Object.values(parts).reduce((sum, seconds) => sum + seconds, 0);
  return { ...parts, orchestration: step - known };
}

/** When a step was committed, by the trainer's sidecar. */
export async function readCommittedAt(store: Store, manifestKey: string): Promise<number> {
  const key = manifestKey.replace(/\.json$/, '.times.json');
  const { committedAt } = await readFile<{ committedAt: string }>(store, key);
  return Date.parse(committedAt);
}

function readTimes(store: Store, key: string): Promise<{ startedAt: number; endedAt: number }> {
  return readFile(store, key);
}

async function readFile<T>(store: Store, key: string): Promise<T> {
  const bytes = await store.read(key);
  if (bytes === null) throw new Error(`the run left no ${key} in the store`);
  return decodeJson(bytes, key) as T;
}

export function meanSplit(splits: readonly Split[]): Split {
  return Object.fromEntries(PARTS.map((part) => [part, mean(splits.map((split) => split[part]))])) as Split;
}

export function printSplit(split: Split): void {
  const whole = Object.values(split).reduce((sum, seconds) => sum + seconds, 0);
  console.log(`\nthe mean step of Temper, ${whole.toFixed(3)} s:`);
  for (const part of PARTS) {
    const share = ((split[part] / whole) * 100).toFixed(0).padStart(3);
    console.log(`  ${part.padEnd(14)} ${split[part].toFixed(3)} s ${share} %`);
  }
}
