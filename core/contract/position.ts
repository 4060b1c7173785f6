/** Where a run stands between two steps, on the wire and in `position.json`. */
import { z } from 'zod';

import { Dollars, RunCosts } from './costs.ts';
import { JudgeSpending, OpenGroup } from './groups.ts';
import { Checkpoint, LeagueOpponent } from './roles.ts';
import { count, roleName } from './values.ts';

const Spent = z.strictObject({ seconds: z.number().min(0), usd: Dollars });

/** Time, tokens and money of a run over all branches, and what its budgets need to know. */
export const CostLedger = z
  .strictObject({
    spent: RunCosts,
    /** Answers of the judge and their tokens; its money is in `spent`, too. */
    judging: JudgeSpending,
    lastStep: Spent,
    sinceStep: Spent,
  })
  .meta({ id: 'CostLedger' });
export type CostLedger = z.infer<typeof CostLedger>;

/** All that the next step depends on, beside the run's settings and scenarios. */
export const Position = z
  .strictObject({
    branch: count,
    /** The last step that was taken. */
    step: count,
    /** The newest commit: the parent of the next training step. */
    checkpoint: Checkpoint,
    /** Policies that the next steps sample from, in order; the last one is `checkpoint`. */
    policies: z.array(Checkpoint).min(1),
    /** The run's first checkpoint, where roles compete or a league plays. */
    start: Checkpoint.optional(),
    /** Opponents of each role that a league plays, with their scores. */
    league: z.record(roleName, z.array(LeagueOpponent)).optional(),
    /** Number of groups since the start. */
    dealt: count,
    /** Groups that wait for rewards or for their turn, in plan order. */
    open: z.array(OpenGroup),
    /** How many of the last steps had nothing to train. */
    emptySteps: count,
    costs: CostLedger,
  })
  .meta({ id: 'Position' });
export type Position = z.infer<typeof Position>;
