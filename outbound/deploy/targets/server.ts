/**
 * A server that has the checkpoint already, from a file that `temper export` wrote: llama.cpp's, SGLang, LM Studio. Nothing
 * is uploaded; its model is found by name, and proven.
 */
import { z } from 'zod';

import { withoutSlash } from '../../../core/names/addresses.ts';
import type { DeployOptions } from '../../../core/contract/deploy.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import type { Made, RecordedDeployment } from '../../../store/records/production/deployments.ts';
import { callHttp } from '../../../core/text/http.ts';
import { modelName } from './names.ts';
import type { DeployTarget, StageContext } from './target.ts';

const KEY_VARIABLE = 'TEMPER_SERVER_KEY';
const Models = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });
/** Models that a message names. */
const MOST_NAMES = 5;

const optionsOf = ({ options }: Pick<RecordedDeployment, 'options'>) => options as DeployOptions<'server'>;
const baseUrlOf = (deployment: Pick<RecordedDeployment, 'options'>): string =>
  `${withoutSlash(optionsOf(deployment).url)}/v1`;

export const serverTarget: DeployTarget = {
  name: 'server',
  stages: () => [{ name: 'find', run: find }],
  address(deployment, made, env) {
    const model = made['find']?.['model'];
    const keyVariable = env[KEY_VARIABLE] ? KEY_VARIABLE : null;
    return typeof model === 'string' ? { baseUrl: baseUrlOf(deployment), model, keyVariable } : null;
  },
};

/** The name that was asked for, the one that Temper would give, or else the server's only model. */
async function find({ deployment, env, fetch, signal }: StageContext): Promise<{ made: Made }> {
  const { policy, checkpoint } = deployment;
  const system = 'the server';
  const caller = { system, keyVariable: KEY_VARIABLE, key: env[KEY_VARIABLE] || null, fetch, signal };
  const { json } = await callHttp(caller, { url: `${baseUrlOf(deployment)}/models` });
  const served = (Models.safeParse(json).data?.data ?? []).map(({ id }) => id);
  const chosen = optionsOf(deployment).modelName;
  const wanted = chosen ?? modelName(checkpoint, policy);
  if (served.includes(wanted)) return { made: { model: wanted } };
  const [only] = served;
  if (chosen === undefined && only !== undefined && served.length === 1) return { made: { model: only } };
  const names = served.length === 0 ? 'nothing' : served.slice(0, MOST_NAMES).join(', ');
  throw new TemperError(
    'DeploymentFailed',
    `the server must list ${wanted}, the model to be proven, but lists ${names}; pass --model-name with the name of ${policy} there`,
  );
}
