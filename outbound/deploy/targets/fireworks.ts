/**
 * Fireworks: a model under a name of the user's choice, its files by signed addresses, and their validation, without which
 * it stays unusable. A deployment of the base model then loads it.
 */
import type { DeployOptions } from '../../../core/contract/deploy.ts';
import { badConfig, TemperError } from '../../../core/contract/failures.ts';
import type { Made, RecordedDeployment } from '../../../store/records/production/deployments.ts';
import { PEFT_CONFIG_FILE, PEFT_WEIGHTS_FILE } from '../../../store/records/runs/peft-adapter.ts';
import { callHttp, type HttpCaller } from '../../../core/text/http.ts';
import { readShape, readDeployedTemplate } from './files.ts';
import { modelName } from './names.ts';
import { serviceCaller, SERVICES, serviceUrl } from './services.ts';
import type { DeployFile, DeployTarget, DeployStage, StageContext, StageOutcome } from './target.ts';

const RANKS = { least: 4, most: 64 };
const TARGETS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'up_proj', 'down_proj', 'gate_proj'];
/** Most deployed models of one page. */
const PAGE = 200;
const MOST_PAGES = 100;

interface Model {
  name: string;
  state?: 'UPLOADING' | 'READY';
  description?: string;
  status?: { code?: string; message?: string };
}
interface DeployedModel {
  model: string;
  deployment: string;
  state?: 'DEPLOYING' | 'DEPLOYED' | 'UNDEPLOYING' | 'UPDATING';
  status?: { code?: string; message?: string };
}
type Page = { deployedModels?: DeployedModel[]; nextPageToken?: string };

const optionsOf = ({ options }: Pick<RecordedDeployment, 'options'>) => options as DeployOptions<'fireworks'>;
const accountOf = ({ env, deployment }: StageContext): string =>
  `${serviceUrl('fireworks', env)}/v1/accounts/${optionsOf(deployment).account}`;

const LOAD: DeployStage = { name: 'load', run: load };
const STAGES: readonly DeployStage[] = [
  { name: 'register', run: register },
  { name: 'upload', run: upload },
  { name: 'validate', run: validate },
];

export const fireworksTarget: DeployTarget = {
  name: 'fireworks',
  stages: (deployment) => [...STAGES, ...(optionsOf(deployment).deployment === undefined ? [] : [LOAD])],
  address(_, made, env) {
    const model = made['load']?.['model'];
    if (typeof model !== 'string') return null;
    return {
      baseUrl: `${serviceUrl('fireworks', env)}/inference/v1`,
      model,
      keyVariable: SERVICES.fireworks.keyVariable,
    };
  },
};

function nameOf({ checkpoint, policy, ...deployment }: RecordedDeployment): string {
  return optionsOf(deployment).modelName ?? modelName(checkpoint, policy);
}

const modelUrl = (context: StageContext): string => `${accountOf(context)}/models/${nameOf(context.deployment)}`;

async function readModel(context: StageContext): Promise<Model | null> {
  const { status, json } = await callHttp(serviceCaller('fireworks', context), {
    url: modelUrl(context),
    expected: [404],
  });
  return status === 404 ? null : (json as Model);
}

async function register(context: StageContext): Promise<{ made: Made }> {
  const { deployment, store } = context;
  const description = `${deployment.policy}, adapter ${deployment.adapter.sha256}, made by Temper`;
  const shape = await readShape(store, deployment);
  checkShape(deployment, shape);
  const earlier = await readModel(context);
  if (earlier !== null) {
    checkOwn(deployment, earlier, description);
    return { made: { model: earlier.name } };
  }
  const model = {
    kind: 'HF_PEFT_ADDON',
    displayName: nameOf(deployment),
    description,
    peftDetails: { baseModel: deployment.baseModel, r: shape.rank, targetModules: shape.targetModules },
  };
  const json = { modelId: nameOf(deployment), model };
  const answer = await callHttp(serviceCaller('fireworks', context), {
    method: 'POST',
    url: `${accountOf(context)}/models`,
    json,
  });
  return { made: { model: (answer.json as Model).name } };
}

function checkShape(
  { policy }: RecordedDeployment,
  { rank, targetModules }: Awaited<ReturnType<typeof readShape>>,
): void {
  const other = targetModules.find((module) => !TARGETS.includes(module));
  const problem =
    rank < RANKS.least || rank > RANKS.most
      ? `a rank from ${RANKS.least} to ${RANKS.most}, but ${policy} has rank ${rank}`
      : other && `adapters of ${TARGETS.join(', ')} only, but ${policy} has one of ${other}`;
  if (problem !== undefined)
    throw badConfig(
      `Fireworks takes ${problem}; train with other --lora-rank or --lora-target-modules, or deploy elsewhere`,
    );
}

function checkOwn(deployment: RecordedDeployment, { name, description }: Model, own: string): void {
  if (description === own) return;
  throw new TemperError(
    'DeploymentFailed',
    `Fireworks has another model under the name ${name}; pass --model-name with another one for ${deployment.policy}`,
  );
}

async function upload(context: StageContext): Promise<{ made: Made }> {
  if ((await readModel(context))?.state === 'READY') return { made: { files: 0 } };
  const files = await filesOf(context);
  const json = { filenameToSize: Object.fromEntries(files.map(({ path, bytes }) => [path, String(bytes)])) };
  const url = `${modelUrl(context)}:getUploadEndpoint`;
  const answer = await callHttp(serviceCaller('fireworks', context), { method: 'POST', url, json });
  const { filenameToSignedUrls: addresses } = answer.json as { filenameToSignedUrls: Record<string, string> };
  // A signed address has its own key: ours stays here.
  const storage = {
    ...serviceCaller('fireworks', context),
    system: "Fireworks' storage",
    key: null,
    keyVariable: null,
  };
  for (const file of files) {
    const body = await file.read();
    const headers = {
      'content-type': 'application/octet-stream',
      'x-goog-content-length-range': `${body.byteLength},${body.byteLength}`,
    };
    await callHttp(storage, { method: 'PUT', url: addresses[file.path]!, body, headers });
  }
  return { made: { files: files.length } };
}

/** The chat template is in a file of Fireworks' own, without which there are no chat completions. */
async function filesOf(context: StageContext): Promise<DeployFile[]> {
  const adapter = (await context.files()).filter(({ path }) => [PEFT_CONFIG_FILE, PEFT_WEIGHTS_FILE].includes(path));
  const template = await readDeployedTemplate(context.store, context.deployment);
  if (template === null) return adapter;
  const conversation = { style: 'jinja', args: { template: new TextDecoder().decode(template) } };
  const bytes = new TextEncoder().encode(JSON.stringify({ conversation_config: conversation }));
  return [...adapter, { path: 'fireworks.json', bytes: bytes.byteLength, sha256: '', read: async () => bytes }];
}

async function validate(context: StageContext): Promise<StageOutcome> {
  const before = await readModel(context);
  if (before?.state === 'READY') return { made: { model: before.name } };
  await callHttp(serviceCaller('fireworks', context), { url: `${modelUrl(context)}:validateUpload` });
  const { state, status, name } = (await readModel(context))!;
  if (state === 'READY') return { made: { model: name } };
  if (status?.code !== undefined && status.code !== 'OK') throw failed(`the model ${name}`, status.message);
  return { waitingFor: `Fireworks validates ${name}` };
}

async function load(context: StageContext): Promise<StageOutcome> {
  const { account, deployment: id, replace } = optionsOf(context.deployment);
  const { model } = context.made['validate']!;
  const deployment = `accounts/${account}/deployments/${id}`;
  const url = `${accountOf(context)}/deployedModels`;
  const caller = serviceCaller('fireworks', context);
  const there = await findDeployed(caller, url, (each) => each.model === model && each.deployment === deployment);
  if (there?.state === 'DEPLOYED') return { made: { deployment, model: `${String(model)}#${deployment}` } };
  if (there?.status?.code !== undefined && there.status.code !== 'OK') throw failed(deployment, there.status.message);
  if (there === undefined) {
    const json = { model, deployment, displayName: nameOf(context.deployment), public: false };
    await callHttp(caller, { method: 'POST', url: `${url}${replace ? '?replaceMergedAddon=true' : ''}`, json });
  }
  return { waitingFor: `Fireworks loads ${String(model)} to ${deployment}` };
}

/** On whatever page it is; there may be hundreds of models. */
async function findDeployed(
  caller: HttpCaller,
  url: string,
  isIt: (each: DeployedModel) => boolean,
): Promise<DeployedModel | undefined> {
  let pageToken = '';
  for (let page = 0; page < MOST_PAGES; page++) {
    const query = new URLSearchParams({ pageSize: String(PAGE), ...(pageToken && { pageToken }) });
    const { json } = await callHttp(caller, { url: `${url}?${query.toString()}` });
    const { deployedModels = [], nextPageToken = '' } = json as Page;
    const there = deployedModels.find(isIt);
    if (there !== undefined || nextPageToken === '') return there;
    pageToken = nextPageToken;
  }
  throw failed('its list of deployed models', `it has more than ${MOST_PAGES} pages`);
}

function failed(what: string, message = 'without a reason'): TemperError {
  return new TemperError(
    'DeploymentFailed',
    `Fireworks failed with ${what} (${message}); correct that, and deploy again`,
  );
}
