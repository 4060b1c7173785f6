/** How a policy is evaluated, on the wire. */
import { z } from 'zod';

import { RolloutConfig } from './contract-config.ts';
import { Usage } from './contract-costs.ts';
import { rolesOfAttempt } from './contract-groups.ts';
import { Checkpoint } from './contract-roles.ts';
import { BlobRef, count, name, positive, sha256 } from './contract-values.ts';

/** One attempt at each held-out scenario. */
export const EvaluateInput = z
  .strictObject({
    run: name,
    branch: count,
    step: count,
    agent: name,
    agentCodeSha256: sha256,
    scenarios: BlobRef,
    firstScenario: count,
    count: positive,
    seed: z.int().min(0),
    policy: Checkpoint,
    ...rolesOfAttempt,
    /**
     * The first checkpoint, if roles compete: each scenario is then played once for each trained role, by `policy`
     * there and by this one's policies in the other trained roles.
     */
    start: Checkpoint.optional(),
    rollout: RolloutConfig,
    inputsSha256: sha256,
  })
  .meta({ id: 'EvaluateInput' });
export type EvaluateInput = z.infer<typeof EvaluateInput>;

export const EvalResult = z
  .strictObject({
    step: count,
    attempts: count,
    /** Held-out scenarios, where roles compete: each of them is then played several times. Absent: as many as attempts. */
    scenarios: positive.optional(),
    failed: count,
    reward: z.number().nullable(),
    metrics: z.record(z.string(), z.number()),
    rolloutsSha256: sha256,
    /** Largest share of attempts in which the model said the same from beginning to end; absent: it is not remarkable. */
    sameAnswerShare: z.number().optional(),
    /**
     * Values of the agent's `spreadBy`, as JSON, in whose scenarios no attempt succeeded, though some did elsewhere. Absent:
     * there are none.
     */
    lostClasses: z.array(z.strictObject({ field: z.string(), value: z.string(), attempts: positive })).optional(),
  })
  .meta({ id: 'EvalResult' });
export type EvalResult = z.infer<typeof EvalResult>;

/** The answer of the activity: only the evaluation is kept. */
export const Evaluated = EvalResult.extend({ usage: Usage.optional() }).meta({ id: 'Evaluated' });
export type Evaluated = z.infer<typeof Evaluated>;
