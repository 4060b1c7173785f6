/** `amend` and `locate`: what is told to a run and must outlive its history, and where its store says that it stands. */
import { AmendInput, type Located, LocateInput } from '../core/contract/contract.ts';
import { TemperError } from '../core/contract/failures.ts';
import { canonicalJson } from '../core/text/hashes.ts';
import { decodeJson, encodeJson } from '../store/bytes/json.ts';
import { changesKey } from '../store/layout.ts';
import { findPosition, rollBack } from '../store/records/runs/positions.ts';
import { asActivity } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export function createAmendAndLocateActivities(dependencies: Dependencies) {
  const { store, logger } = dependencies;

  /** Kept before the first step that it changes is planned: a run that is started again goes on with it. */
  async function amend({ run, number, changes }: AmendInput): Promise<void> {
    const key = changesKey(run, number);
    const file = { schema: 1, changes };
    const { bytes } = await store.publish(key, encodeJson(file));
    if (canonicalJson(decodeJson(bytes, key)) === canonicalJson(file)) return;
    const rule = `${key} holds other changes than those of this run's workflow`;
    throw new TemperError(
      'StepConflict',
      `${rule}: another workflow changed the settings of the run; continue with temper train`,
    );
  }

  async function locate({ run, rollback }: LocateInput): Promise<Located> {
    if (rollback === null) return findPosition(store, run);
    const located = await rollBack(store, run, rollback);
    logger.info({ run, branch: located.branch, step: rollback.step }, 'rolled back');
    return located;
  }

  return { amend: asActivity(dependencies, AmendInput, amend), locate: asActivity(dependencies, LocateInput, locate) };
}
