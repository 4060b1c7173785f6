/** `record`: the run's state for people, and the end of journals that nothing will ask for. */
import type { RecordInput } from '../core/contract.ts';
import { addToCurve } from '../store/curve.ts';
import { encodeJson } from '../store/json.ts';
import { journalsPrefix, stateKey } from '../store/layout.ts';
import { asActivity, type Scope } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

/** Journals are kept until so many steps after the commit. */
const KEPT_STEPS = 2;

export function createRecordActivities(dependencies: Dependencies) {
  const { store } = dependencies;

  async function record({ state, summaries }: RecordInput, { checkFresh }: Scope): Promise<void> {
    // Steps first: a state never names a step that the curve does not have.
    await addToCurve(store, state.run, state, summaries, checkFresh);
    // Nothing here is write-once: a worker that stood still must not put an old state over a newer one.
    checkFresh();
    await store.replace(stateKey(state.run), encodeJson(state));
    await removeJournals(state.run, state.state === 'completed' ? Infinity : state.step - KEPT_STEPS);
  }

  async function removeJournals(run: string, lastStep: number): Promise<void> {
    const prefix = journalsPrefix(run);
    for await (const key of store.list(prefix)) {
      const step = Number(/\.(\d+)\/$/.exec(key)?.[1] ?? Infinity);
      if (step <= lastStep) await store.removeFolder(key.slice(0, -1));
    }
  }

  return { record: asActivity(dependencies, record) };
}
