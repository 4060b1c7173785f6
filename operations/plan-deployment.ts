/** Plans a deployment from the flags and the store. */
import { badConfig } from '../core/contract/failures.ts';
import { DEPLOY_OPTIONS, type DeployTargetName } from '../core/contract/deploy.ts';
import { requireTrainedName } from '../core/names/policy-name.ts';
import { PROOF_STAGE } from '../outbound/deploy/run-stage.ts';
import { requireTarget } from '../outbound/deploy/targets.ts';
import type { NewDeployment } from '../store/records/production/deployments.ts';
import { findTrainedPolicy, type TrainedPolicy } from '../store/records/runs/find-policy.ts';
import type { Store } from '../store/store.ts';
import { readCardFacts } from './model-card/card-facts.ts';
import { renderModelCard } from './model-card/model-card.ts';
import type { DeployInput } from './deployments.ts';
import type { ProjectPlace } from './operation.ts';

const PROMPTS = 8;
const BASE_MODEL = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/;
/** Targets that know base models by their names on the hub. */
const HUB_NAMES: readonly DeployTargetName[] = ['huggingface', 'together', 'wandb', 's3'];
/** Targets that need no name of it. */
const NAMELESS: readonly DeployTargetName[] = ['s3', 'vllm', 'ollama', 'server'];
/** Targets of whole models. */
const WHOLE: readonly DeployTargetName[] = ['ollama', 'server'];

export async function planDeployment(input: DeployInput, place: ProjectPlace, store: Store): Promise<NewDeployment> {
  const { to: target, noProof, prompts } = input;
  const options = readOptions(input);
  const policy = await findTrainedPolicy(store, requireTrainedName(input.checkpoint));
  requireAdapter(policy, target);
  const facts = await readCardFacts(store, policy, { format: 'peft', converted: null }, place);
  const baseModel = readBaseModel(input, facts.base);
  const hubId = HUB_NAMES.includes(target) ? baseModel : facts.base.hubId;
  const stages = requireTarget(target)
    .stages({ options })
    .map(({ name }) => name);
  return {
    checkpoint: policy.checkpoint,
    policy: policy.name,
    target,
    options,
    baseModel,
    adapter: policy.adapter,
    adapterConfig: policy.manifest.adapterConfig,
    chatTemplateSha256: facts.chatTemplateSha256,
    card: renderModelCard({ ...facts, base: { ...facts.base, hubId } }),
    prompts: noProof ? null : (prompts ?? PROMPTS),
    stages: noProof ? stages : [...stages, PROOF_STAGE],
  };
}

function requireAdapter({ name, config }: TrainedPolicy, target: DeployTargetName): void {
  if (config.train.lora !== null || WHOLE.includes(target)) return;
  const remedy = `write the whole model with temper export ${name} --format merged, and upload that`;
  throw badConfig(`--to ${target} takes LoRA adapters, but ${name} was trained with --full-fine-tuning; ${remedy}`);
}

function readBaseModel(
  { to: target, baseModel: asked }: DeployInput,
  { hubId, name }: { readonly hubId: string | null; readonly name: string },
): string | null {
  if (asked !== null && !BASE_MODEL.test(asked))
    throw badConfig(`--base-model must be letters, digits, - _ . and /, got ${asked}; pass the name at ${target}`);
  const found = asked ?? (HUB_NAMES.includes(target) ? hubId : null);
  if (found !== null || NAMELESS.includes(target)) return found;
  const example = target === 'fireworks' ? 'accounts/fireworks/models/NAME' : 'NAMESPACE/NAME';
  throw badConfig(`the name of ${name} at ${target} is not known; pass --base-model ${example}`);
}

const flagOf = (option: string): string => option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** The flags that were given, as the target's options. */
function readOptions(input: DeployInput): Record<string, unknown> {
  const target = input.to;
  const schema = DEPLOY_OPTIONS[target];
  const given: Record<string, string | boolean> = {};
  for (const option of Object.keys(schema.shape)) {
    const value = input[option as keyof DeployInput];
    if (value !== null && value !== false) given[option] = value as string | boolean;
  }
  const { data, error } = schema.safeParse(given);
  if (data !== undefined) return data;
  const [issue] = error.issues;
  const option = String(issue?.path[0]);
  const got = given[option] === undefined || given[option] === true ? '' : `, got ${String(given[option])}`;
  throw badConfig(`--${flagOf(option)} ${issue?.message}${got}; pass one for --to ${target}`);
}
