/** Reads the episodes that a report shows: some steps, some groups of each, and the first games of the evaluations. */
import { gunzipSync } from 'node:zlib';
import type { RunState } from '../../core/contract.ts';
import { evalRolloutsKey, groupsPrefix, judgedKey, rolloutsKey } from '../../store/layout.ts';
import type { StepPlace } from '../../store/layout.ts';
import type { Store } from '../../store/store.ts';
import { plural } from '../format.ts';
import { viewAttempt } from './attempt-view.ts';
import type { RecordedAttempt } from './attempt-view.ts';
import { BOUNDS, clipText, sampleEvenly } from './data.ts';
import type { EpisodeSet, GroupView } from './data.ts';

export interface Episodes {
  readonly sets: readonly EpisodeSet[];
  readonly leftOut: readonly string[];
}

export async function readEpisodes(store: Store, state: RunState): Promise<Episodes> {
  const steps = sampleEvenly(Array.from({ length: state.step }, (_, index) => index + 1), BOUNDS.steps);
  const evals = sampleEvenly(state.evals.map((evaluation) => evaluation.step), BOUNDS.steps);
  const leftOut: string[] = [];
  if (steps.length < state.step) leftOut.push(`Episodes of ${plural(steps.length, 'step')} out of ${state.step} are shown.`);
  const places = [
    ...evals.map((step) => ({ step, read: readEvaluation })),
    ...steps.map((step) => ({ step, read: readStep })),
  ];
  const sets: EpisodeSet[] = [];
  let room = BOUNDS.total;
  for (const { step, read } of places) {
    const set = await read(store, { run: state.run, branch: state.branch, step });
    const size = set === null ? 0 : JSON.stringify(set).length;
    if (set === null || size > room) {
      leftOut.push(`${read === readStep ? 'Step' : 'Evaluation'} ${step}: ${set === null ? 'no files in the store' : 'too large'}.`);
      continue;
    }
    room -= size;
    sets.push(set);
  }
  return { sets: sets.toSorted((a, b) => a.step - b.step || a.kind.localeCompare(b.kind)), leftOut };
}

async function readStep(store: Store, place: StepPlace): Promise<EpisodeSet | null> {
  const numbers: number[] = [];
  for await (const key of store.list(groupsPrefix(place))) {
    const match = /(\d+)\.rollouts\.jsonl\.gz$/.exec(key);
    if (match !== null) numbers.push(Number(match[1]));
  }
  if (numbers.length === 0) return null;
  numbers.sort((a, b) => a - b);
  const shown = numbers.slice(0, BOUNDS.groupsPerStep);
  const groups: GroupView[] = [];
  for (const group of shown) groups.push(await readGroup(store, place, group));
  const leftOut = shown.length < numbers.length ? `${shown.length} of ${numbers.length} groups are shown` : null;
  return { kind: 'step', step: place.step, groups, leftOut };
}

async function readGroup(store: Store, place: StepPlace, group: number): Promise<GroupView> {
  const { header, attempts } = await readRollouts(store, rolloutsKey({ ...place, group }));
  const judged = await readJson<{ rewards: (number | null)[] }>(store, judgedKey({ ...place, group }));
  const rewards = attempts.map(({ reward }, index) => (judged === null ? reward : (judged.rewards[index] ?? null)));
  const known = rewards.filter((reward) => reward !== null);
  const mean = known.length === 0 ? null : known.reduce((sum, reward) => sum + reward, 0) / known.length;
  const shown = attempts.slice(0, BOUNDS.attemptsPerGroup);
  return {
    title: `group ${group}`,
    scenario: clipText(String(header['scenarioId'] ?? ''), 200),
    attempts: shown.map((record, index) =>
      viewAttempt(record, `attempt ${record.attempt}`, { own: rewards[index] ?? null, mean }),
    ),
  };
}

async function readEvaluation(store: Store, place: StepPlace): Promise<EpisodeSet | null> {
  const key = evalRolloutsKey(place);
  if ((await store.read(key)) === null) return null;
  const { attempts } = await readRollouts(store, key);
  const shown = attempts.slice(0, BOUNDS.evalGames);
  const views = shown.map((record) =>
    viewAttempt(record, String(record.scenarioId ?? record.attempt), { own: record.reward, mean: null }),
  );
  const leftOut = shown.length < attempts.length ? `the first ${shown.length} of ${attempts.length} scenarios are shown` : null;
  return { kind: 'eval', step: place.step, groups: [{ title: 'held-out scenarios', scenario: '', attempts: views }], leftOut };
}

async function readRollouts(
  store: Store,
  key: string,
): Promise<{ header: Record<string, unknown>; attempts: RecordedAttempt[] }> {
  const bytes = await store.read(key);
  if (bytes === null) return { header: {}, attempts: [] };
  const [header, ...attempts] = gunzipSync(bytes).toString('utf8').trimEnd().split('\n');
  return {
    header: JSON.parse(header ?? '{}') as Record<string, unknown>,
    attempts: attempts.map((line) => JSON.parse(line) as RecordedAttempt),
  };
}

async function readJson<T>(store: Store, key: string): Promise<T | null> {
  const bytes = await store.read(key);
  return bytes === null ? null : (JSON.parse(Buffer.from(bytes).toString('utf8')) as T);
}
