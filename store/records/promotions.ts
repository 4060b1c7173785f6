/**
 * Which checkpoint is a run's production, as a numbered trail of write-once rows: the alias `RUN@production`. The
 * checkpoint may be of another run, for one that was trained from what the first one recorded.
 */
import { z } from 'zod';

import { Checkpoint } from '../../core/contract.ts';
import { badConfig, type TemperError } from '../../core/failures.ts';
import { policyName } from '../../core/policy-name.ts';
import { RECORD_SCHEMA } from '../../core/wire-constants.ts';
import { decodeJson, encodeJson } from '../bytes/json.ts';
import { promotionKey, promotionsPrefix } from '../layout.ts';
import type { Store } from '../store.ts';
import { childNumbers } from './children.ts';
import { parseStored, tolerant } from './file-schemas.ts';

const PROMOTION_KINDS = ['promoted', 'back', 'refused'] as const;

export interface NewPromotion {
  /** `back` returns to the checkpoint before; `refused` changes nothing, and says why. */
  kind: (typeof PROMOTION_KINDS)[number];
  checkpoint: Checkpoint;
  by: string | null;
  reason: string | null;
  /** Mean reward of its evaluation on held-out scenarios; null without any. */
  evaluation: { reward: number; scenarios: number } | null;
  /** Numbers by which it was compared with the checkpoint before, by name; null if it was not. */
  comparison: Record<string, number> | null;
  /** Only the first of two rows with the same key is written: whoever was killed may promote again. */
  key: string | null;
}

export interface Promotion extends NewPromotion {
  schema: 1;
  at: string;
  number: number;
}

const PromotionSchema = z.looseObject({
  schema: z.literal(RECORD_SCHEMA),
  kind: z.enum(PROMOTION_KINDS),
  checkpoint: tolerant(Checkpoint),
  by: z.string().nullable(),
  reason: z.string().nullable(),
  evaluation: z.looseObject({ reward: z.number(), scenarios: z.int() }).nullable(),
  comparison: z.record(z.string(), z.number()).nullable(),
  key: z.string().nullable(),
  at: z.iso.datetime(),
});

/** From the first to the last. */
export async function readPromotions(store: Store, run: string): Promise<Promotion[]> {
  const numbers = await childNumbers(store, promotionsPrefix(run));
  const rows = await Promise.all(
    numbers.map(async (number) => {
      const key = promotionKey(run, number);
      const bytes = await store.read(key);
      return bytes === null ? [] : [{ ...parseStored(PromotionSchema, decodeJson(bytes, key), key), number }];
    }),
  );
  return rows.flat();
}

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
  for (;;) {
    const rows = await readPromotions(store, run);
    const promotion = typeof decide === 'function' ? decide(rows) : decide;
    const earlier = promotion.key === null ? undefined : rows.find(({ key }) => key === promotion.key);
    if (earlier !== undefined) return { row: earlier, created: false };
    const number = (rows.at(-1)?.number ?? 0) + 1;
    const row = { schema: RECORD_SCHEMA, ...promotion, at: new Date().toISOString() } as const;
    const { created } = await store.publish(promotionKey(run, number), encodeJson(row));
    if (created) return { row: { ...row, number }, created };
    // The current one is no longer that which was to be taken back.
    if (promotion.kind === 'back') throw changed(run);
  }
}

/** Checkpoint that `back` returns to. Refused without an earlier one. */
export async function findBefore(store: Store, run: string): Promise<Checkpoint> {
  const inEffect = promotionsInEffect(await readPromotions(store, run));
  const [before, current] = [inEffect.at(-2), inEffect.at(-1)];
  if (before !== undefined) return before.checkpoint;
  const found = current === undefined ? 'nothing was promoted' : `${policyName(current.checkpoint)} is the only one`;
  throw badConfig(
    `${run}@production must have an earlier promotion to go back to, but ${found}; promote a checkpoint: temper promote ${run}@STEP`,
  );
}

function changed(run: string): TemperError {
  return badConfig(`${run}@production was changed by somebody else at this moment; see temper promote ${run} --list`);
}
