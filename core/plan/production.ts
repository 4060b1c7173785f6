/**
 * The plan of a run that trains recorded conversations: which of them a step trains, and as which groups. Pure; a step's number is all that its deal depends on, so that a step after a rollback, or one that is planned again,
 * trains the same conversations.
 */
import type { GatherInput, ProductionConfig, RunConfig } from '../contract/contract.ts';
import { hashOf } from '../text/hashes.ts';
import { planDeal } from './deal.ts';
import { rewardRules, type PlayPosition, type RewardRules } from './step.ts';
import { GROUP_OF_ONE } from '../rules/production.ts';

type Dealt = Pick<RunConfig, 'production' | 'groupsPerStep' | 'seed'>;

/** Steps of one pass; the last of them trains what is left. */
export function stepsOfPass({ conversations }: Pick<ProductionConfig, 'conversations'>, groupsPerStep: number): number {
  return Math.ceil(conversations / groupsPerStep);
}

/** Indices of a step's conversations, in the order of its groups: none twice in a pass. */
export function dealConversations({ production, groupsPerStep, seed }: Dealt, step: number): number[] {
  const { conversations } = requireProduction(production);
  const perPass = stepsOfPass({ conversations }, groupsPerStep);
  const [pass, place] = [Math.floor((step - 1) / perPass), ((step - 1) % perPass) * groupsPerStep];
  const count = Math.min(groupsPerStep, conversations - place);
  return planDeal(seed, conversations, pass * conversations + place, count).map(({ scenario }) => scenario);
}

/** Input of the activity that stores a step's conversations as its groups. */
export function planGathering(config: RunConfig, { branch, step: last }: PlayPosition): GatherInput {
  const step = last + 1;
  return {
    run: config.run,
    branch,
    step,
    recordings: requireProduction(config.production).recordings,
    conversations: dealConversations(config, step),
    minimumGroupSize: GROUP_OF_ONE,
    ...rewardRules(config.train),
  };
}

/** One group of such a step, as its files name it. */
export interface GatheredGroup extends RewardRules {
  step: number;
  group: number;
  /** Index of the conversation. */
  scenario: number;
  minimumGroupSize: number;
  inputsSha256: string;
}

/** The groups of a step, in order. */
export function planGathered({ run: _run, recordings, conversations, ...shared }: GatherInput): GatheredGroup[] {
  const { branch, step } = shared;
  return conversations.map((conversation, group) => {
    const inputsSha256 = hashOf({ branch, step, group, recordings, conversation });
    return { ...shared, group, scenario: conversation, inputsSha256 };
  });
}

function requireProduction(production: RunConfig['production']): ProductionConfig {
  if (production !== undefined) return production;
  throw new Error('this run trains no recorded conversations');
}
