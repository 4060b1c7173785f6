/** Generated from the metadata of core/contract/ by test/contract/generate-flags.ts; a test compares. Do not edit. */
import type { Flags } from './flags.ts';

export const DEPLOY_TARGETS = [ 'huggingface', 'together', 'fireworks', 'wandb', 's3', 'vllm', 'ollama', 'server' ] as const;

export const TARGET_FLAGS = {
  'repo': { kind: 'text', placeholder: 'NAMESPACE/NAME', description: 'repository of the hub, created as private if it does not exist; vllm loads an existing one', needs: [ 'to huggingface', 'to together', 'to vllm' ] },
  'public': { kind: 'boolean', description: 'everybody can read the repository; without it, a public one is refused', needs: [ 'to huggingface' ] },
  'bucket': { kind: 'text', placeholder: 's3://BUCKET/PREFIX', description: 'bucket to write to, with credentials from AWS_…', needs: [ 'to together', 'to s3' ] },
  'model-name': { kind: 'text', placeholder: 'NAME', description: 'name of the model there', default: 'RUN-stepSTEP', needs: [ 'to together', 'to fireworks', 'to wandb', 'to vllm', 'to ollama', 'to server' ] },
  'endpoint': { kind: 'text', placeholder: 'ID', description: 'dedicated endpoint with LoRA that serves the adapter', needs: [ 'to together' ] },
  'account': { kind: 'text', placeholder: 'ID', description: 'your account', needs: [ 'to fireworks' ] },
  'deployment': { kind: 'text', placeholder: 'ID', description: 'deployment of the base model that serves the adapter', needs: [ 'to fireworks' ] },
  'replace': { kind: 'boolean', description: "replaces the adapter that the deployment serves; with vllm, unloads the run's other checkpoints", needs: [ 'to fireworks', 'to vllm' ] },
  'entity': { kind: 'text', placeholder: 'NAME', description: 'user or team', needs: [ 'to wandb' ] },
  'project': { kind: 'text', placeholder: 'NAME', description: 'project of the artifact', needs: [ 'to wandb' ] },
  'url': { kind: 'text', placeholder: 'URL', description: 'address of the server, without /v1', needs: [ 'to vllm', 'to ollama', 'to server' ] },
  'folder': { kind: 'text', placeholder: 'FOLDER', description: 'where the server sees the folder of TEMPER_VLLM_FOLDER', default: 'at the same place', needs: [ 'to vllm' ] },
  'quantize': { kind: 'choice', choices: [ 'none', 'q8_0' ], placeholder: 'NAME', description: 'weights in 8 bits (q8_0), or in 16 (none)', default: 'none', needs: [ 'to ollama' ] },
} as const satisfies Flags;
