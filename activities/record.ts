/** `record`: the run's state for people, and the end of journals that nothing will ask for. */
import type { RecordInput, StepSummary } from '../core/contract.ts';
import { encodeJson, encodeJsonLines } from '../store/json.ts';
import { journalsPrefix, stateKey, stepsKey } from '../store/layout.ts';
import { readSteps } from '../store/run-reader.ts';
import { asActivity } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

/** Journals are kept until so many steps after the commit. */
const KEPT_STEPS = 2;

export function createRecordActivities(dependencies: Dependencies) {
  const { store } = dependencies;

  async function record({ state, summaries }: RecordInput): Promise<void> {
    const steps = mergeSteps(await readSteps(store, state.run), summaries, state.step);
    // Steps first: a state never names a step that the curve does not have.
    await store.replace(stepsKey(state.run), encodeJsonLines(steps));
    await store.replace(stateKey(state.run), encodeJson(state));
    const committed = steps.at(-1)?.step ?? 0;
    await removeJournals(state.run, state.state === 'completed' ? Infinity : committed - KEPT_STEPS);
  }

  async function removeJournals(run: string, lastStep: number): Promise<void> {
    const prefix = journalsPrefix(run);
    for await (const key of store.list(prefix)) {
      const step = Number(/\.(\d+)\/$/.exec(key)?.[1] ?? Infinity);
      if (step <= lastStep) await store.removeJournals(key.slice(0, -1));
    }
  }

  return { record: asActivity(dependencies, record) };
}

/** The newest word on each step; the workflow sends those it has at hand, after continue-as-new not all. */
function mergeSteps(written: readonly StepSummary[], added: readonly StepSummary[], last: number): StepSummary[] {
  const steps = new Map(
    [...written.filter(({ step }) => step <= last), ...added].map((summary) => [summary.step, summary]),
  );
  return [...steps.values()].toSorted((a, b) => a.step - b.step);
}
