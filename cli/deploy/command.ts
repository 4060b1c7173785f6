import { CHECKPOINT_HELP, JSON_FLAG } from '../../operations/flags.ts';
import { deployList } from '../../operations/deployments.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';
import { actionsOf } from '../command-line/to-command.ts';
import { DEPLOY_TARGETS, TARGET_FLAGS } from './target-flag-table.ts';

export const deployCommand = defineCommand({
  name: 'deploy',
  group: 'Use what was trained',
  summary: 'deploy a checkpoint to a host, and prove that the host serves it',
  usage: "CHECKPOINT --to TARGET [the target's flags] [--wait]",
  details: [
    'A workflow uploads the adapter, registers it, waits until it is ready, and attaches it to an endpoint if you name one.',
    'It continues after a crash, and neither uploads nor creates anything twice. At the end it sends recorded held-out',
    'prompts to what was deployed and compares the answers with those of the checkpoint; a difference fails the',
    'deployment. If nothing answers there, it compares the files. See temper deploy list.',
    'Keys are read from the environment of the worker: HF_TOKEN, TOGETHER_API_KEY, FIREWORKS_API_KEY,',
    'WANDB_API_KEY, VLLM_API_KEY, TEMPER_SERVER_KEY, or AWS_….',
    'Without --wait it returns at once, if temper dev or a Temporal server of yours is running; else it starts the local',
    'stack and waits.',
    ...CHECKPOINT_HELP,
  ],
  examples: [
    'temper deploy demo@best --to huggingface --repo me/demo --wait',
    'temper deploy demo@120 --to together --bucket s3://models/adapters --endpoint endpoint-1a2b --wait',
    'temper deploy demo --to fireworks --account me --base-model accounts/fireworks/models/qwen3-4b --deployment my-qwen',
    'temper deploy demo@best --to vllm --url http://127.0.0.1:8000 --wait',
    'temper deploy demo@best --to ollama --url http://127.0.0.1:11434 --wait',
    'temper deploy demo@best --to server --url http://127.0.0.1:8080 --wait',
  ],
  arguments: { checkpoint: { placeholder: 'CHECKPOINT' } },
  flags: {
    to: {
      kind: 'choice',
      choices: DEPLOY_TARGETS,
      placeholder: 'TARGET',
      description: DEPLOY_TARGETS.join(', '),
      required: 'pass a target such as --to huggingface',
    },
    wait: { kind: 'boolean', description: 'show the stages until the deployment has ended' },
    ...TARGET_FLAGS,
    'base-model': {
      kind: 'text',
      placeholder: 'NAME',
      description: 'name of the base model at the target',
      default: 'its name on the Hugging Face hub, if known',
    },
    prompts: {
      kind: 'integer',
      minimum: 1,
      maximum: 100,
      placeholder: 'N',
      description: 'recorded held-out prompts that the proof sends',
      default: '8',
      excludes: ['no-proof'],
    },
    'no-proof': { kind: 'boolean', description: 'do not prove that what was deployed is the checkpoint' },
    again: { kind: 'boolean', description: 'deploy anew what was deployed with the same flags before' },
    json: JSON_FLAG,
  },
  actions: actionsOf({ deployList }),
  run: async (context): Promise<number> => (await import('./deploy.ts')).deploy(context),
});

export type DeployContext = CommandContext<typeof deployCommand>;
