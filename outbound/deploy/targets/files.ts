/** The files of a deployment: an adapter in PEFT's format as it was committed, with what a target wants to know of it. */
import { createHash } from 'node:crypto';

import type { BlobRef } from '../../../core/contract/contract.ts';
import { decodeJson } from '../../../store/bytes/json.ts';
import { readTemplate } from '../../../store/records/runs/chat-templates.ts';
import type { RecordedDeployment } from '../../../store/records/production/deployments.ts';
import { PEFT_CONFIG_FILE, PEFT_WEIGHTS_FILE } from '../../../store/records/runs/peft-adapter.ts';
import type { Store } from '../../../store/store.ts';
import type { DeployFile } from './target.ts';

/** File name that tokenizers of transformers look for. */
export const CHAT_TEMPLATE_FILE = 'chat_template.jinja';
/** The model card. */
export const CARD = 'README.md';

/** Settings of an adapter that targets check before they take it. */
export interface AdapterShape {
  readonly rank: number;
  readonly targetModules: readonly string[];
}

export async function deploymentFiles(store: Store, deployment: RecordedDeployment): Promise<DeployFile[]> {
  const { adapter, card } = deployment;
  const template = await readDeployedTemplate(store, deployment);
  return [
    inMemory(PEFT_CONFIG_FILE, await configFor(store, deployment)),
    { path: PEFT_WEIGHTS_FILE, bytes: adapter.bytes, sha256: adapter.sha256, read: () => store.getBlob(adapter) },
    ...(template === null ? [] : [inMemory(CHAT_TEMPLATE_FILE, template)]),
    inMemory(CARD, new TextEncoder().encode(card)),
  ];
}

/** Null: the base model's own. */
export async function readDeployedTemplate(
  store: Store,
  { chatTemplateSha256 }: Pick<RecordedDeployment, 'chatTemplateSha256'>,
): Promise<Uint8Array | null> {
  return chatTemplateSha256 === null ? null : readTemplate(store, chatTemplateSha256);
}

export async function readShape(store: Store, { adapterConfig }: RecordedDeployment): Promise<AdapterShape> {
  const { r, target_modules: targetModules } = await readConfig(store, adapterConfig);
  return { rank: Number(r), targetModules: targetModules as string[] };
}

/** The committed config has the base model's name on the host that trained it; a target resolves its own. */
async function configFor(store: Store, { adapterConfig, baseModel }: RecordedDeployment): Promise<Uint8Array> {
  if (baseModel === null) return store.getBlob(adapterConfig);
  const config = { ...(await readConfig(store, adapterConfig)), base_model_name_or_path: baseModel };
  return new TextEncoder().encode(`${JSON.stringify(config, null, 2)}\n`);
}

async function readConfig(store: Store, ref: BlobRef): Promise<Record<string, unknown>> {
  return decodeJson(await store.getBlob(ref), ref.key) as Record<string, unknown>;
}

export function inMemory(path: string, bytes: Uint8Array): DeployFile {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { path, bytes: bytes.byteLength, sha256, read: () => Promise.resolve(bytes) };
}
