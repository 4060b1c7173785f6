/** A run as Temporal's UI introduces it: the line in its lists, and the text above its history. */
import type { ProductionConfig, Role, RunConfig } from '../contract/contract.ts';
import { plural } from './format.ts';
import { policyName } from '../names/policy-name.ts';
import { describeLeftOut } from '../rules/production.ts';
import { isSupervisedOnly, supervisedSteps } from '../rules/supervised.ts';

/** Short form of a base model's name: a commit is cut to the length that git shows. */
export function shortModelName(name: string): string {
  // oxlint-disable-next-line temper/linear-regex -- 40 characters at each @
  return name.replace(/@([0-9a-f]{7})[0-9a-f]{33}$/, '@$1');
}

export function configSummary({ run, agent, baseModel }: RunConfig): string {
  return `${run}: ${agent} on ${shortModelName(baseModel)}`;
}

/** `demo: tic-tac-toe on pocket, 60 steps of 8 groups × 16 attempts` */
export function describeRun(config: RunConfig): string {
  const { run, baseModel, steps, groupsPerStep, groupSize, supervised, production } = config;
  const count = plural(steps, 'step');
  if (supervised && isSupervisedOnly(config))
    return `${run}: supervised training of ${shortModelName(baseModel)}, ${count} of ${plural(supervised.examplesPerStep, 'example')}`;
  const groups = plural(groupsPerStep, 'group');
  return `${configSummary(config)}, ${count} of ${production ? groups : `${groups} × ${groupSize} attempts`}`;
}

export function configDetails(config: RunConfig): string {
  const { learningRate, seed, train, parent, startAdapter } = config;
  return [
    ...describeSteps(config),
    ...(parent ? [`Starts from the adapter and the optimizer state of **${policyName(parent)}**.`] : []),
    ...(startAdapter ? [`Starts from a PEFT adapter, sha256 ${startAdapter.weights.sha256}.`] : []),
    ...(config.roles ? [`Roles: ${describeRoles(config).join('; ')}.`] : []),
    `Loss ${isSupervisedOnly(config) ? 'cross-entropy' : train.loss.name}, learning rate ${learningRate} (${config.learningRateSchedule}), ${train.lora === null ? 'full fine-tuning' : `LoRA rank ${train.lora.rank}`}, seed ${seed}.`,
    `\`temper report ${config.run}\` writes the report; \`temper show ${config.run} --follow\` shows it live.`,
  ].join('\n\n');
}

/** `x: policy main`, `user: openai/gpt-5-mini`: each role with its player. */
export function describeRoles({ roles = {} }: Pick<RunConfig, 'roles'>): string[] {
  return Object.entries(roles).map(([name, role]) => `${name}: ${describePlayer(role)}`);
}

function describePlayer(role: Role): string {
  if (role.kind === 'policy') return `policy ${role.policy}`;
  if (role.kind === 'hosted') return role.model;
  if (role.kind === 'league') return `league of ${role.policy}, every ${role.every} steps, the newest ${role.keep}`;
  const { run, branch, step } = role.checkpoint;
  return policyName({ run, branch, step, policy: role.policy });
}

function describeSteps(config: RunConfig): string[] {
  const { agent, baseModel, steps, groupsPerStep, groupSize, supervised, production } = config;
  if (production !== undefined) return [describeProduction(production, config)];
  const examples = supervised && `${supervised.examplesPerStep} of ${supervised.examples} examples`;
  const first = supervisedSteps(config);
  if (isSupervisedOnly(config)) return [`Trains **${baseModel}** on examples: ${steps} steps of ${examples}.`];
  const played = `Trains the agent **${agent}** on **${baseModel}**: ${steps - first} steps of ${groupsPerStep} groups × ${groupSize} attempts.`;
  return examples === undefined ? [played] : [`Begins with ${first} supervised steps of ${examples}.`, played];
}

function describeProduction(
  { run, conversations, leftOut }: ProductionConfig,
  { baseModel, steps, groupsPerStep }: RunConfig,
): string {
  const reasons = describeLeftOut(leftOut);
  const what = `${conversations} recorded conversations of **${run}**${reasons === null ? '' : ` (left out: ${reasons})`}`;
  return `Trains **${baseModel}** on ${what}: ${steps} steps of ${groupsPerStep}.`;
}
