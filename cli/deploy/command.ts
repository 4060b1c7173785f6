import { deploy, deployList } from '../../operations/deployments.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';
import { actionsOf, toCommand } from '../command-line/to-command.ts';

const { name, group, summary, details = [], arguments: args, flags } = toCommand(deploy);

export const deployCommand = defineCommand({
  name,
  ...(group && { group }),
  summary,
  usage: "CHECKPOINT --to TARGET [the target's flags] [--wait]",
  details: [
    ...details,
    'Without --wait it returns at once, if temper dev or a Temporal server of yours is running; else it starts the local',
    'stack and waits.',
  ],
  examples: [
    'temper deploy demo@best --to huggingface --repo me/demo --wait',
    'temper deploy demo@120 --to together --bucket s3://models/adapters --endpoint endpoint-1a2b --wait',
    'temper deploy demo --to fireworks --account me --base-model accounts/fireworks/models/qwen3-4b --deployment my-qwen',
    'temper deploy demo@best --to vllm --url http://127.0.0.1:8000 --wait',
    'temper deploy demo@best --to ollama --url http://127.0.0.1:11434 --wait',
    'temper deploy demo@best --to server --url http://127.0.0.1:8080 --wait',
  ],
  arguments: args,
  flags: {
    wait: { kind: 'boolean', description: 'show the stages until the deployment has ended' },
    ...flags,
  },
  actions: actionsOf({ deployList }),
  run: async (context): Promise<number> => (await import('./deploy.ts')).deployAndFollow(context),
});

export type DeployContext = CommandContext<typeof deployCommand>;
