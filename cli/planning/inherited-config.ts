/** Configuration of a fork: its parent's, with the values that were changed. */
import { withoutDependents } from '../../core/rules/config-rules.ts';
import type { RunConfig } from '../../core/contract/contract.ts';
import { findLossProblem } from '../../core/rules/loss-options.ts';
import type { RunOptions } from '../../core/rules/run-defaults.ts';
import type { Settings } from '../../core/rules/settings.ts';
import type { Parent } from './find-parent.ts';
import { applyRunFlags } from './run-flags.ts';

/** Configuration of a fork that the same agent plays: roles, judge and external rewards are as the parent recorded them. */
export function forkedConfig(parent: Parent, run: string, { temperature, ...settings }: Settings): RunConfig {
  const given = Object.entries({ ...settings, 'rollout.temperature': temperature });
  const values = new Map<string, unknown>(given.filter(([, value]) => value !== undefined));
  const { roles, competing, external } = parent.config;
  const ofAgent = {
    ...(roles !== undefined && { roles }),
    ...(competing !== undefined && { competing }),
    ...(external !== undefined && { external }),
  };
  const inherited = inheritFrom(parent.config, values);
  return applyRunFlags({ ...inherited, ...ofAgent, run, parent: parent.checkpoint }, values);
}

/** Options that decide whether a loss has an effect. */
const UPDATES = ['passes', 'miniBatches'] as const;

/** The parent's configuration, except for defaults that depend on a changed flag, and for a loss with options that have no effect. */
export function inheritFrom(parent: RunConfig, values: ReadonlyMap<string, unknown>): RunOptions {
  // Not inherited: the warm start is done, a start adapter is part of the parent's checkpoint, and roles and external rewards are the agent's.
  const {
    train,
    supervised: _supervised,
    startAdapter: _,
    roles: _roles,
    competing: _competing,
    external,
    replacementRounds,
    ...others
  } = withoutDependents(parent, values);
  const updates = Object.fromEntries(
    UPDATES.filter((name) => values.has(`train.${name}`)).map((name) => [name, values.get(`train.${name}`)]),
  );
  const maxStaleness = (values.get('maxStaleness') ?? parent.maxStaleness) as RunConfig['maxStaleness'];
  const groupsAhead = (values.get('groupsAhead') ?? parent.groupsAhead) as RunConfig['groupsAhead'];
  const isAccepted = findLossProblem({ maxStaleness, groupsAhead, train: { ...train, ...updates } }) === null;
  const hasOwnLoss = isAccepted && (values.get('train.loss.name') ?? train.loss.name) === train.loss.name;
  return {
    ...others,
    ...(external === undefined ? { replacementRounds } : {}),
    train: hasOwnLoss ? train : { ...train, loss: {} },
  };
}
