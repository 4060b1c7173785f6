/**
 * What a target (a tracker, a trace exporter) has of a run. `pending` is written before a delivery and removed
 * after it: whoever takes over a delivery in doubt repeats the same rows at the same numbers.
 */
import { z } from 'zod';

import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { encodeJson } from '../../bytes/json.ts';
import { outboundCursorKey } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { readStored } from '../file-schemas.ts';

const OUTCOMES = ['finished', 'stopped', 'cancelled', 'failed', 'crashed', 'rolled back'] as const;
export type RunOutcome = (typeof OUTCOMES)[number];

const step = z.int().min(0);

const CursorSchema = z.looseObject({
  schema: z.literal(RECORD_SCHEMA),
  branch: step,
  /** Steps after it are delivered. */
  step,
  /** Steps whose evaluations were delivered. */
  evals: z.array(step),
  /** Number of rows that were delivered. */
  rows: z.int().min(0),
  /** Rows of a delivery in doubt: `s12` is step 12, `e12` the evaluation after it. */
  pending: z.array(z.string().regex(/^[se]\d+$/)).nullable(),
  hasBegun: z.boolean(),
  /** The end that was delivered; null: none, or the run went on after it. */
  ended: z.enum(OUTCOMES).nullable(),
  /** Ids and addresses that the target gave: never a key. */
  memory: z.record(z.string(), z.string()),
  /** Why the last try failed; absent or null: it did not. */
  failure: z.string().nullish(),
});
export type Cursor = z.output<typeof CursorSchema>;

/** The cursor of a target that knows nothing of a run. */
export const NEW_CURSOR: Cursor = {
  schema: RECORD_SCHEMA,
  branch: 0,
  step: 0,
  evals: [],
  rows: 0,
  pending: null,
  hasBegun: false,
  ended: null,
  memory: {},
};

export function readCursor(store: Store, run: string, target: string): Promise<Cursor | null> {
  return readStored(store, outboundCursorKey(run, target), CursorSchema);
}

export async function writeCursor(store: Store, run: string, target: string, cursor: Cursor): Promise<void> {
  await store.replace(outboundCursorKey(run, target), encodeJson(cursor));
}
