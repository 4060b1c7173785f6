/** `record`: the run's state for people, and the end of journals that nothing will ask for. */
import { RecordInput } from '../core/contract.ts';
import { addToCurve } from '../store/records/curve.ts';
import { encodeJson } from '../store/bytes/json.ts';
import { KEPT_JOURNAL_STEPS, removeJournals } from '../store/records/journals.ts';
import { stateKey } from '../store/layout.ts';
import { asActivity, type Scope } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export function createRecordActivities(dependencies: Dependencies) {
  const { store } = dependencies;

  async function record({ state, summaries }: RecordInput, { checkFresh }: Scope): Promise<void> {
    // Steps first: a state never names a step that the curve does not have.
    await addToCurve(store, state.run, state, summaries, checkFresh);
    // Nothing here is write-once: a worker that stood still must not put an old state over a newer one.
    checkFresh();
    await store.replace(stateKey(state.run), encodeJson(state));
    await removeJournals(store, state.run, state.state === 'completed' ? Infinity : state.step - KEPT_JOURNAL_STEPS);
  }

  return { record: asActivity(dependencies, RecordInput, record) };
}
