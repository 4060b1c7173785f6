/** Operations on deployments. */
import { DEPLOY_TARGETS, TARGET_FLAGS } from './target-flag-table.ts';
import { CHECKPOINT_ARGUMENT, CHECKPOINT_HELP, type Flags } from './flags.ts';
import { defineOperation, type FlagInput } from './operation.ts';

const work = () => import('./describe-deployment.ts');

const DEPLOY_FLAGS = {
  to: {
    kind: 'choice',
    choices: DEPLOY_TARGETS,
    placeholder: 'TARGET',
    description: DEPLOY_TARGETS.join(', '),
    required: 'pass a target such as --to huggingface',
  },
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
} as const satisfies Flags;

export type DeployInput = FlagInput<typeof DEPLOY_FLAGS> & { readonly checkpoint: string };

export const deploy = defineOperation({
  name: 'deploy',
  group: 'Use what was trained',
  summary: 'deploy a checkpoint to a host, and prove that the host serves it',
  details: [
    'A workflow uploads the adapter, registers it, waits until it is ready, and attaches it to an endpoint if you name one.',
    'It continues after a crash, and neither uploads nor creates anything twice. At the end it sends recorded held-out',
    'prompts to what was deployed and compares the answers with those of the checkpoint; a difference fails the',
    'deployment. If nothing answers there, it compares the files. See temper deploy list.',
    'Keys are read from the environment of the worker: HF_TOKEN, TOGETHER_API_KEY, FIREWORKS_API_KEY,',
    'WANDB_API_KEY, VLLM_API_KEY, TEMPER_SERVER_KEY, or AWS_….',
    ...CHECKPOINT_HELP,
  ],
  arguments: { checkpoint: CHECKPOINT_ARGUMENT },
  flags: DEPLOY_FLAGS,
  effect: 'changes',
  needsServer: true,
  sendsKey: true,
  button: { label: 'Deploy', on: 'checkpoint' },
  says: async (input, place) => (await import('./start-deployment.ts')).sayDeployment(place, input),
  run: async (input, place) => (await import('./start-deployment.ts')).deployCheckpoint(place, input),
  lines: async (shown) => {
    const { run, policy, target, id, place } = shown;
    if (shown.state !== 'deployed')
      return [
        `${policy} is being deployed to ${target} (${id})`,
        `look with temper deploy list ${run}; the same command with --wait shows its stages`,
      ];
    return [`${policy} is deployed to ${target}: ${place ?? '–'}`, `proof   ${(await work()).describeProof(shown)}`];
  },
});

export const deployList = defineOperation({
  name: 'deploy list',
  summary: 'list where checkpoints are deployed, with their proofs',
  details: ['Reads the store and needs no server.'],
  arguments: { run: { placeholder: 'RUN', optional: true } },
  flags: {},
  effect: 'reads',
  run: async ({ run }, place) => (await work()).listAllDeployments(await place.store(), run),
  lines: async (found) => {
    if (found.length === 0) return ['nothing was deployed; deploy a checkpoint: temper deploy RUN --to TARGET'];
    const { describeProof } = await work();
    const rows = found.map((one) => [
      one.policy,
      one.target,
      [one.state, one.stage, one.message].filter(Boolean).join(', '),
      one.place ?? '–',
      describeProof(one),
      one.since,
    ]);
    return [{ head: ['checkpoint', 'target', 'state', 'where', 'proof', 'since'], rows }];
  },
});
