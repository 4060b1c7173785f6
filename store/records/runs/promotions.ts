/**
 * Which checkpoint is a run's production, as a ledger: the alias `RUN@production`. The
 * checkpoint may be of another run, for one that was trained from what the first one recorded.
 */
import { z } from 'zod';

import { Checkpoint } from '../../../core/contract/contract.ts';
import { badConfig, type TemperError } from '../../../core/contract/failures.ts';
import { policyName } from '../../../core/names/policy-name.ts';
import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { promotionKey } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { tolerant } from '../file-schemas.ts';
import { Ledger } from '../ledger.ts';

const PromotionRow = z.strictObject({
  schema: z.literal(RECORD_SCHEMA),
  /** `back` returns to the checkpoint before; `refused` changes nothing, and says why. */
  kind: z.enum(['promoted', 'back', 'refused']),
  checkpoint: Checkpoint,
  by: z.string().nullable(),
  reason: z.string().nullable(),
  /** Mean reward of its evaluation on held-out scenarios; null without any. */
  evaluation: z.strictObject({ reward: z.number(), scenarios: z.int() }).nullable(),
  /** Numbers by which it was compared with the checkpoint before, by name; null if it was not. */
  comparison: z.record(z.string(), z.number()).nullable(),
  /** Only the first of two rows with the same key is written: whoever was killed may promote again. */
  key: z.string().nullable(),
  at: z.iso.datetime(),
});
type PromotionRow = z.infer<typeof PromotionRow>;
const PromotionSchema = tolerant(PromotionRow);

export type NewPromotion = Omit<PromotionRow, 'schema' | 'at'>;
export interface Promotion extends PromotionRow {
  number: number;
}

const ledgerOf = (store: Store, run: string): Ledger<PromotionRow> =>
  new Ledger<PromotionRow>(store, PromotionSchema, (index) => promotionKey(run, index + 1));

/** From the first to the last. */
export async function readPromotions(store: Store, run: string): Promise<Promotion[]> {
  return numbered(await ledgerOf(store, run).read());
}

const numbered = (rows: readonly PromotionRow[]): Promotion[] =>
  rows.map((row, index) => ({ ...row, number: index + 1 }));

/** Key of the row that a firing of a schedule writes. */
export function firingPromotionKey(schedule: string, number: number): string {
  return `${schedule}/${number}`;
}

/** Promotions in effect, the current one last: `back` took the later ones away. */
export function promotionsInEffect(rows: readonly Promotion[]): Promotion[] {
  const inEffect: Promotion[] = [];
  for (const row of rows) {
    if (row.kind === 'promoted') inEffect.push(row);
    else if (row.kind === 'back') inEffect.pop();
  }
  return inEffect;
}

/** Null while none was promoted. */
export async function findPromoted(store: Store, run: string): Promise<Promotion | null> {
  return promotionsInEffect(await readPromotions(store, run)).at(-1) ?? null;
}

/** Appends a row, decided from the rows before it; the earlier one with the same key if there is one. */
export async function recordPromotion(
  store: Store,
  run: string,
  decide: NewPromotion | ((rows: readonly Promotion[]) => NewPromotion),
): Promise<{ row: Promotion; created: boolean }> {
  const earlierWith = (rows: readonly PromotionRow[], key: string | null) =>
    key === null ? undefined : numbered(rows).find((row) => row.key === key);
  let key: string | null = null;
  let isFirst = true;
  const { rows, added } = await ledgerOf(store, run).append((before) => {
    const promotion = typeof decide === 'function' ? decide(numbered(before)) : decide;
    ({ key } = promotion);
    if (earlierWith(before, key) !== undefined) return null;
    // The current one is no longer that which was to be taken back.
    if (promotion.kind === 'back' && !isFirst) throw changed(run);
    isFirst = false;
    return { schema: RECORD_SCHEMA, ...promotion, at: new Date().toISOString() };
  });
  return added === null
    ? { row: earlierWith(rows, key)!, created: false }
    : { row: numbered(rows).at(-1)!, created: true };
}

/** Checkpoint that `back` returns to. Refused without an earlier one. */
export async function findBefore(store: Store, run: string): Promise<Checkpoint> {
  const inEffect = promotionsInEffect(await readPromotions(store, run));
  const [before, current] = [inEffect.at(-2), inEffect.at(-1)];
  if (before !== undefined) return before.checkpoint;
  const found = current === undefined ? 'nothing was promoted' : `${policyName(current.checkpoint)} is the only one`;
  throw badConfig(
    `${run}@production must have an earlier promotion to go back to, but ${found}; promote a checkpoint: temper production promote ${run}@STEP`,
  );
}

function changed(run: string): TemperError {
  return badConfig(`${run}@production was changed by somebody else at this moment; see temper production list ${run}`);
}
