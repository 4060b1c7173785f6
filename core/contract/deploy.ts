/** Contract types of deployments: the targets with their options, and the input of the workflow. */
import { z } from 'zod';

import { name } from './values.ts';

/** Part of a folder's name and of a workflow's id: `step12.together.3fa9c1d2`. */
const deploymentId = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,99}$/);

const text = (pattern: RegExp, rule: string): z.ZodString =>
  z.string(`must be ${rule}`).regex(pattern, `must be ${rule}`);

const repo = text(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}\/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/,
  'NAMESPACE/NAME of letters, digits, - _ and .',
);
const bucket = text(
  /^s3:\/\/[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$/,
  's3://BUCKET or s3://BUCKET/PREFIX, without credentials',
);
const dashed = text(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'lowercase letters, digits and -, at most 63 of them');
const part = text(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'letters, digits, - _ and .');
const url = text(/^https?:\/\/[A-Za-z0-9.[\]:_-]+(\/[A-Za-z0-9._~/-]*)?$/, 'http://HOST:PORT, without credentials');
const folder = text(/^(\/(?!\.\.?(\/|$))[A-Za-z0-9._ -]+)+\/?$/, 'an absolute folder');
const served = text(/^[A-Za-z0-9/][A-Za-z0-9._:/@-]{0,199}$/, 'the name of a model as its server lists it');
const flag = z.boolean().default(false);

/**
 * Options of each target. A flag of `temper deploy` has the option's name in kebab case, and a target takes no other
 * ones. Keys are in the environment of workers alone.
 */
export const DEPLOY_OPTIONS = {
  huggingface: z.strictObject({ repo, public: flag }),
  together: z
    .strictObject({
      repo: repo.optional(),
      bucket: bucket.optional(),
      modelName: dashed.optional(),
      endpoint: part.optional(),
    })
    .refine((options) => (options.repo === undefined) !== (options.bucket === undefined), {
      path: ['repo'],
      message:
        'or --bucket must say where Together fetches the adapter from: a repository of the hub, or a bucket; pass one of them',
    }),
  fireworks: z
    .strictObject({ account: dashed, modelName: dashed.optional(), deployment: dashed.optional(), replace: flag })
    .refine((options) => !options.replace || options.deployment !== undefined, {
      path: ['replace'],
      message: 'has no effect without --deployment; pass both, or leave it out',
    }),
  wandb: z.strictObject({ entity: part, project: part, modelName: part.optional() }),
  s3: z.strictObject({ bucket }),
  vllm: z
    .strictObject({
      url,
      folder: folder.optional(),
      repo: repo.optional(),
      modelName: part.optional(),
      replace: flag,
    })
    .refine((options) => options.folder === undefined || options.repo === undefined, {
      path: ['folder'],
      message: 'has no effect with --repo; leave one of them out',
    }),
  ollama: z.strictObject({ url, modelName: part.optional(), quantize: z.enum(['none', 'q8_0']).default('none') }),
  server: z.strictObject({ url, modelName: served.optional() }),
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
