/** Checkpoints, and the roles of an agent, on the wire: who plays a role, and what the league has come to. */
import { z } from 'zod';

import { count, name, positive, roleName, sha256 } from './values.ts';

/** One commit of a branch: hashes of the bytes of `run@step`. */
export const Checkpoint = z
  .strictObject({
    run: name,
    branch: count,
    step: count,
    manifestSha256: sha256,
    /** Weights of the policy `main`. */
    adapterSha256: sha256,
    /** Adapters of the other policies. Absent: the run trains `main` alone. Not hashed: the manifest's hash covers it. */
    adapters: z.record(roleName, sha256).optional(),
  })
  .meta({ id: 'Checkpoint' });
export type Checkpoint = z.infer<typeof Checkpoint>;

/** Trained: the run's policy of this name. */
export const PolicyRole = z.strictObject({ kind: z.literal('policy'), policy: roleName }).meta({ id: 'PolicyRole' });

/** Played by one policy of a checkpoint of this store, and never trained. */
export const CheckpointRole = z
  .strictObject({ kind: z.literal('checkpoint'), checkpoint: Checkpoint, policy: roleName })
  .meta({ id: 'CheckpointRole' });

/** Played by a model elsewhere, such as `openai/gpt-5-mini`. */
export const HostedRole = z
  .strictObject({ kind: z.literal('hosted'), model: z.string().min(1).max(200) })
  .meta({ id: 'HostedRole' });

/** Played by an older checkpoint of this run's policy: the newest `keep` of every `every` steps are drawn from. */
export const LeagueRole = z
  .strictObject({ kind: z.literal('league'), policy: roleName, every: positive, keep: positive.max(64) })
  .meta({ id: 'LeagueRole' });

export const Role = z
  .discriminatedUnion('kind', [PolicyRole, CheckpointRole, HostedRole, LeagueRole])
  .meta({ id: 'Role' });
export type Role = z.infer<typeof Role>;

/** The policies that a run trains, by role; `main` is the one that a run without roles trains. */
export const TrainedRoles = z.record(roleName, roleName);
export type TrainedRoles = z.infer<typeof TrainedRoles>;

/** Player of a role that is not trained: a policy of a checkpoint, frozen or drawn from the league. */
export const Seat = z.strictObject({ checkpoint: Checkpoint, policy: roleName }).meta({ id: 'Seat' });
export type Seat = z.infer<typeof Seat>;
export const Seats = z.record(roleName, Seat);
export type Seats = z.infer<typeof Seats>;

/** Score of the trained roles against an opponent of the league: a won attempt counts 1, a drawn one ½. */
export const LeagueScore = z
  .strictObject({ branch: count, step: count, played: count, won: z.number().min(0) })
  .meta({ id: 'LeagueScore' });
export type LeagueScore = z.infer<typeof LeagueScore>;

/** For each role that a league plays, its opponents in order of their steps. */
export const LeagueScores = z.record(roleName, z.array(LeagueScore));
export type LeagueScores = z.infer<typeof LeagueScores>;

/** An opponent of the league as the workflow carries it. */
export const LeagueOpponent = z
  .strictObject({ checkpoint: Checkpoint, played: count, won: z.number().min(0) })
  .meta({ id: 'LeagueOpponent' });
export type LeagueOpponent = z.infer<typeof LeagueOpponent>;
