/** A run as Temporal's UI introduces it: the line in its lists, and the text above its history. */
import type { RunConfig } from './contract.ts';
import { shortModelName } from './base-model-name.ts';
import { policyName } from './policy-name.ts';

export function configSummary({ run, agent, baseModel }: RunConfig): string {
  return `${run}: ${agent} on ${shortModelName(baseModel)}`;
}

export function configDetails(config: RunConfig): string {
  const { agent, baseModel, steps, groupsPerStep, groupSize, learningRate, seed, train, parent } = config;
  return [
    `Trains the agent **${agent}** on **${baseModel}**: ${steps} steps of ${groupsPerStep} groups × ${groupSize} attempts.`,
    ...(parent ? [`Starts from the adapter and the optimizer state of **${policyName(parent)}**.`] : []),
    `Loss ${train.loss.name}, learning rate ${learningRate} (${config.learningRateSchedule}), LoRA rank ${train.lora.rank}, seed ${seed}.`,
    `\`temper report ${config.run}\` writes the report; \`temper watch ${config.run}\` shows it live.`,
  ].join('\n\n');
}
