/** `record` and `checkpoint`: what is written for people between steps, and what is left to do when a step is over. */
import { CheckpointInput, RecordInput, type RunState } from '../core/contract/contract.ts';
import { encodeJson } from '../store/bytes/json.ts';
import { stateKey } from '../store/layout.ts';
import { isUnreadable } from '../core/contract/failures.ts';
import { addToCurve } from '../store/records/runs/curve.ts';
import { KEPT_JOURNAL_STEPS, removeJournals } from '../store/records/groups/journals.ts';
import { publishPosition } from '../store/records/runs/positions.ts';
import { pruneAfterStep } from '../store/records/retention/prune.ts';
import { asActivity, type Scope } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export function createRecordActivities(dependencies: Dependencies) {
  const { store, logger } = dependencies;

  async function record({ state }: RecordInput, { checkFresh }: Scope): Promise<void> {
    await writeState(state, checkFresh);
    // Nothing will ask for a journal again.
    if (state.state === 'completed') await removeJournals(store, state.run, Infinity);
  }

  /** Beside the next step: nothing here is read by one, but by a run that continues. */
  async function checkpoint({ state, summary, position }: CheckpointInput, { checkFresh }: Scope): Promise<void> {
    // The curve first: neither a position nor a state names a step that the curve does not have.
    await addToCurve(store, state.run, state, [summary], checkFresh);
    await publishPosition(store, state.run, position);
    await writeState(state, checkFresh);
    await removeJournals(store, state.run, state.step - KEPT_JOURNAL_STEPS);
    await removeOldWeights(state, summary.step, checkFresh);
  }

  /** Another run's broken file leaves this one with more than it needs, and does not end it. */
  async function removeOldWeights(state: RunState, step: number, checkFresh: () => void): Promise<void> {
    const { run, branch } = state;
    try {
      const removed = await pruneAfterStep(store, state, { branch, step }, checkFresh);
      if (removed !== null && removed.bytes > 0)
        logger.info({ run, step, checkpoints: removed.pruned.length, bytes: removed.bytes }, 'pruned old weights');
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      logger.warn({ run, step, error: error.message }, 'did not prune old weights');
    }
  }

  /** Not write-once: a worker that stood still must not put an old state over a newer one. */
  async function writeState(state: RunState, checkFresh: () => void): Promise<void> {
    checkFresh();
    await store.replace(stateKey(state.run), encodeJson(state));
  }

  return {
    record: asActivity(dependencies, RecordInput, record),
    checkpoint: asActivity(dependencies, CheckpointInput, checkpoint),
  };
}
