/** An artifact of type `lora` that W&B Inference serves by its name. */
import { withoutSlash } from '../../../core/names/addresses.ts';
import type { DeployOptions } from '../../../core/contract/deploy.ts';
import type { Made, RecordedDeployment } from '../../../store/records/production/deployments.ts';
import { logArtifact } from '../../track/wandb-artifact.ts';
import { openWandbApi, WANDB_KEY_VARIABLE } from '../../track/wandb-graphql.ts';
import { modelName, stepName } from './names.ts';
import { CARD } from './files.ts';
import type { DeployTarget, StageContext } from './target.ts';

const INFERENCE = 'https://api.inference.wandb.ai/v1';
/** The region in which W&B Inference reads adapters. */
const REGION = 'coreweave-us';

const optionsOf = ({ options }: Pick<RecordedDeployment, 'options'>) => options as DeployOptions<'wandb'>;

export const wandbTarget: DeployTarget = {
  name: 'wandb',
  stages: () => [{ name: 'upload', run: upload }],
  address(_, made, env) {
    const baseUrl = withoutSlash(env['WANDB_INFERENCE_URL'] || INFERENCE);
    return { baseUrl, model: String(made['upload']!['model']), keyVariable: WANDB_KEY_VARIABLE };
  },
};

/** An artifact is found by its content, so that an upload that was cut off goes on. */
async function upload({ deployment, env, fetch, signal, files }: StageContext): Promise<{ made: Made }> {
  const { checkpoint, policy, baseModel, adapter } = deployment;
  const { entity, project, modelName: name = modelName(checkpoint, policy) } = optionsOf(deployment);
  const folder = (await files()).filter(({ path }) => path !== CARD);
  const alias = stepName(checkpoint);
  const artifact = await logArtifact(openWandbApi(null, env, { fetch, signal }), {
    entity,
    project,
    runId: null,
    name,
    type: 'lora',
    metadata: { 'wandb.base_model': baseModel, step: checkpoint.step, adapter_sha256: adapter.sha256 },
    aliases: [alias, 'latest'],
    files: await Promise.all(folder.map(async ({ path, read }) => ({ path, bytes: await read() }))),
    storageRegion: REGION,
  });
  return { made: { artifact, model: `wandb-artifact:///${entity}/${project}/${name}:${alias}` } };
}
