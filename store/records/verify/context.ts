import type { Checkpoint, Prepared, RunConfig, SettingChange } from '../../../core/contract/contract.ts';
import { leagueAtStart } from '../../../core/plan/league.ts';
import { policiesAtStart, positionAt, type RunPosition } from '../../../core/plan/step.ts';
import { configAt } from '../../../core/rules/settings.ts';
import type { Store } from '../../store.ts';
import type { DecidedGroup } from '../groups/step-verdict.ts';
import type { Findings } from './findings.ts';

/** State that the parts of a verification share. */
export interface VerifyContext {
  store: Store;
  run: string;
  /** Original configuration. */
  config: RunConfig | null;
  /** Changed settings, oldest first. */
  changes: readonly SettingChange[];
  prepared: Prepared | null;
  /** A script owns the loop: which groups there are, and which are trained, no plan says. */
  isLoop: boolean;
  findings: Findings;
  /** Groups by the keys of their rollouts: later steps may take them. */
  decided: Map<string, DecidedGroup>;
  /** Objects whose inputs do not follow from what is stored. */
  otherInputs: string[];
}

/** Position on a branch; null: an earlier part could not be read. */
export interface Walk {
  dealt: number;
  checkpoint: Checkpoint | null;
  /** Policies of the next steps, in order. */
  policies: readonly (Checkpoint | null)[];
  /** The run's earlier checkpoints, as far as roles need them. */
  players: Players | null;
  /** Open groups; null: not known. */
  open: RunPosition['open'] | null;
}

type Players = Pick<RunPosition, 'start' | 'league'>;

/** Start of a run or a branch. */
export function walkFrom({ config }: VerifyContext, dealt: number, checkpoint: Checkpoint | null): Walk {
  const players = config === null || checkpoint === null ? null : leagueAtStart(config, checkpoint);
  const policies = config === null ? [checkpoint] : policiesAtStart(config, checkpoint);
  return { dealt, checkpoint, policies, players, open: [] };
}

/** Under which a step was planned. */
export function plannedConfig(
  { config, changes }: VerifyContext,
  step: { branch: number; step: number },
): RunConfig | null {
  return config && configAt(config, changes, step);
}

/** Position that a step's plans depend on, if all of it is known. */
export function plannedPosition(context: VerifyContext, branch: number, step: number, walk: Walk): RunPosition | null {
  const { prepared } = context;
  const { checkpoint, dealt, players, open } = walk;
  const policies = walk.policies.filter((policy) => policy !== null);
  const isKnown = checkpoint !== null && policies.length === walk.policies.length;
  if (context.config === null || prepared === null || !isKnown || players === null) return null;
  if (open === null) return null;
  return positionAt({ ...players, open, branch, prepared, step, checkpoint, policies, dealt, emptySteps: 0 });
}

/** The hash of inputs as stored, and as the plans make it now. */
export function compareInputs(context: VerifyContext, object: string, stored: string, planned: string | null): void {
  if (planned === null) return;
  context.findings.count('inputs');
  if (stored !== planned) context.otherInputs.push(object);
}
