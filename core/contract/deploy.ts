/** Contract types of deployments: the targets with their options, and the input of the workflow. */
import { z } from 'zod';

import { optionsOf } from './options.ts';
import { name } from './values.ts';

/** Part of a folder's name and of a workflow's id: `step12.together.3fa9c1d2`. */
const deploymentId = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,99}$/);

const text = (pattern: RegExp, rule: string): z.ZodString =>
  z.string(`must be ${rule}`).regex(pattern, `must be ${rule}`);

const described = optionsOf('deploy');

const repo = described(
  text(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}\/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/,
    'NAMESPACE/NAME of letters, digits, - _ and .',
  ),
  'repository of the hub, created as private if it does not exist; vllm loads an existing one',
  { placeholder: 'NAMESPACE/NAME' },
);
const bucket = described(
  text(
    /^s3:\/\/[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$/,
    's3://BUCKET or s3://BUCKET/PREFIX, without credentials',
  ),
  'bucket to write to, with credentials from `AWS_…`',
  { placeholder: 's3://BUCKET/PREFIX' },
);
const dashed = text(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'lowercase letters, digits and -, at most 63 of them');
const part = text(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'letters, digits, - _ and .');
const url = described(
  text(/^https?:\/\/[A-Za-z0-9.[\]:_-]+(\/[A-Za-z0-9._~/-]*)?$/, 'http://HOST:PORT, without credentials'),
  'address of the server, without /v1',
  { placeholder: 'URL' },
);
const folder = text(/^(\/(?!\.\.?(\/|$))[A-Za-z0-9._ -]+)+\/?$/, 'an absolute folder');
const served = text(/^[A-Za-z0-9/][A-Za-z0-9._:/@-]{0,199}$/, 'the name of a model as its server lists it');
const modelName = <T extends z.ZodType>(form: T): T =>
  described(form, 'name of the model there', { default: 'RUN-stepSTEP' });
const id = { placeholder: 'ID' };
const isPublic = described(z.boolean(), 'everybody can read the repository; without it, a public one is refused');
const replace = described(
  z.boolean(),
  "replaces the adapter that the deployment serves; with vllm, unloads the run's other checkpoints",
);
const quantize = described(z.enum(['none', 'q8_0']), 'weights in 8 bits (q8_0), or in 16 (none)', { default: 'none' });

/**
 * Options of each target. `npm run contract` makes the flags of `temper deploy` of them: each has the option's name in kebab
 * case, and is for the targets that have it. Keys are in the environment of workers alone.
 */
export const DEPLOY_OPTIONS = {
  huggingface: z.strictObject({ repo, public: isPublic.default(false) }),
  together: z
    .strictObject({
      repo: repo.optional(),
      bucket: bucket.optional(),
      modelName: modelName(dashed).optional(),
      endpoint: described(part, 'dedicated endpoint with LoRA that serves the adapter', id).optional(),
    })
    .refine((options) => (options.repo === undefined) !== (options.bucket === undefined), {
      path: ['repo'],
      message:
        'or --bucket must say where Together fetches the adapter from: a repository of the hub, or a bucket; pass one of them',
    }),
  fireworks: z
    .strictObject({
      account: described(dashed, 'your account', id),
      modelName: modelName(dashed).optional(),
      deployment: described(dashed, 'deployment of the base model that serves the adapter', id).optional(),
      replace: replace.default(false),
    })
    .refine((options) => !options.replace || options.deployment !== undefined, {
      path: ['replace'],
      message: 'has no effect without --deployment; pass both, or leave it out',
    }),
  wandb: z.strictObject({
    entity: described(part, 'user or team'),
    project: described(part, 'project of the artifact'),
    modelName: modelName(part).optional(),
  }),
  s3: z.strictObject({ bucket }),
  vllm: z
    .strictObject({
      url,
      folder: described(folder, 'where the server sees the folder of `TEMPER_VLLM_FOLDER`', {
        placeholder: 'FOLDER',
        default: 'at the same place',
      }).optional(),
      repo: repo.optional(),
      modelName: modelName(part).optional(),
      replace: replace.default(false),
    })
    .refine((options) => options.folder === undefined || options.repo === undefined, {
      path: ['folder'],
      message: 'has no effect with --repo; leave one of them out',
    }),
  ollama: z.strictObject({ url, modelName: modelName(part).optional(), quantize: quantize.default('none') }),
  server: z.strictObject({ url, modelName: modelName(served).optional() }),
} as const;

export type DeployTargetName = keyof typeof DEPLOY_OPTIONS;
export type DeployOptions<T extends DeployTargetName> = z.infer<(typeof DEPLOY_OPTIONS)[T]>;

export const DEPLOY_TARGETS = Object.keys(DEPLOY_OPTIONS) as DeployTargetName[];

/** Input of the activity; everything else about a deployment is in the store. */
export const DeployStageInput = z.strictObject({
  run: name,
  id: deploymentId,
  stage: z.string().regex(/^[a-z]{1,20}$/),
});
export type DeployStageInput = z.infer<typeof DeployStageInput>;
