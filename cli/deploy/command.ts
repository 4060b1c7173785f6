import { CHECKPOINT_HELP, type Flags, JSON_FLAG } from '../../operations/flags.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';

/** Options of targets, one flag each; `core/contract/deploy.ts` says which target takes which, and what they look like. */
const TARGET_FLAGS = {
  repo: {
    kind: 'text',
    placeholder: 'NAMESPACE/NAME',
    description: 'huggingface, together: repository of the hub, created if it does not exist; vllm: one that it loads',
  },
  public: { kind: 'boolean', description: 'huggingface: everybody can read the repository' },
  bucket: {
    kind: 'text',
    placeholder: 's3://BUCKET/PREFIX',
    description: 's3, together: bucket to write to',
  },
  'model-name': {
    kind: 'text',
    placeholder: 'NAME',
    description: 'together, fireworks, wandb, vllm, ollama, server: name of the model there',
    default: 'RUN-stepSTEP',
  },
  endpoint: {
    kind: 'text',
    placeholder: 'ID',
    description: 'together: dedicated endpoint with LoRA that is to serve it',
  },
  account: { kind: 'text', placeholder: 'ID', description: 'fireworks: your account' },
  deployment: {
    kind: 'text',
    placeholder: 'ID',
    description: 'fireworks: deployment of the base model that is to serve it',
  },
  replace: {
    kind: 'boolean',
    description: "fireworks: in place of the adapter that the deployment serves now; vllm: unload the run's others",
  },
  url: { kind: 'text', placeholder: 'URL', description: 'vllm, ollama, server: address of the server, without /v1' },
  folder: {
    kind: 'text',
    placeholder: 'FOLDER',
    description: 'vllm: where the server sees the folder of TEMPER_VLLM_FOLDER',
    default: 'at the same place',
  },
  quantize: {
    kind: 'choice',
    choices: ['none', 'q8_0'],
    placeholder: 'NAME',
    description: 'ollama: weights in 8 bits (q8_0), or in 16 (none)',
    default: 'none',
  },
  entity: { kind: 'text', placeholder: 'NAME', description: 'wandb: user or team' },
  project: { kind: 'text', placeholder: 'NAME', description: 'wandb: project of the artifact' },
} as const satisfies Flags;

export type TargetFlag = keyof typeof TARGET_FLAGS;

export const deployCommand = defineCommand({
  name: 'deploy',
  summary: 'deploy a checkpoint to a host, and prove that the host serves it',
  usage: "CHECKPOINT --to TARGET [the target's flags] [--wait]",
  details: [
    'A workflow uploads the adapter, registers it, waits until it is ready, and attaches it to an endpoint if you name one.',
    'It continues after a crash, and neither uploads nor creates anything twice. At the end it sends recorded held-out',
    'prompts to what was deployed and compares the answers with those of the checkpoint; a difference fails the',
    'deployment. If nothing answers there, it compares the files. See temper deployments.',
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
      choices: ['huggingface', 'together', 'fireworks', 'wandb', 's3', 'vllm', 'ollama', 'server'],
      placeholder: 'TARGET',
      description: 'huggingface, together, fireworks, wandb, s3, vllm, ollama or server',
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
    },
    'no-proof': { kind: 'boolean', description: 'do not prove that what was deployed is the checkpoint' },
    again: { kind: 'boolean', description: 'deploy anew what was deployed with the same flags before' },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./deploy.ts')).deploy(context),
});

export const deploymentsCommand = defineCommand({
  name: 'deployments',
  summary: 'list where checkpoints are deployed, with their proofs',
  usage: '[RUN] [--json]',
  details: ['Reads the store and needs no server.'],
  arguments: { run: { placeholder: 'RUN', optional: true } },
  flags: { json: JSON_FLAG },
  run: async (context): Promise<number> => (await import('./list-deployments.ts')).showDeployments(context),
});

export type DeployContext = CommandContext<typeof deployCommand>;
export type DeploymentsContext = CommandContext<typeof deploymentsCommand>;
