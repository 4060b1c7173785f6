/** Files of the whole run: its configuration, scenarios and state. Others that are only for display are not verified. */
import type { z } from 'zod';

import type { Prepared, RunConfig, RunState } from '../../../core/contract/contract.ts';
import { isUnreadable, TemperError } from '../../../core/contract/failures.ts';
import { parseStored, PreparedFileSchema, RunFileSchema } from '../file-schemas.ts';
import { decodeJson, decodeJsonLines } from '../../bytes/json.ts';
import { blobKey, preparedKey, runKey, scenarioPartsKey, stateKey } from '../../layout.ts';
import { readRunTemplate } from '../runs/chat-templates.ts';
import { readDataset } from '../runs/datasets.ts';
import { blobsOfConfig } from '../runs/references.ts';
import { parseState, renamed, REWRITTEN } from '../runs/run-reader.ts';
import { openScenarioFile, type ScenarioFile } from '../runs/scenario-files.ts';
import { hashBytes } from '../../bytes/sha256.ts';
import type { Store } from '../../store.ts';
import type { Findings } from './findings.ts';

/** Null: missing or unreadable, and reported. */
export interface RunFiles {
  config: RunConfig | null;
  /** A script's own loop has none. */
  prepared: Prepared | null;
  isLoop: boolean;
  state: RunState | null;
}

export async function verifyRunFiles(store: Store, run: string, findings: Findings): Promise<RunFiles> {
  const file = await verifyFile(store, findings, runKey(run), RunFileSchema);
  if (file !== null && file.config.run !== run)
    findings.problem(
      'run files',
      runKey(run),
      `it belongs to the run ${file.config.run}`,
      renamed(run, file.config.run),
    );
  const isLoop = file?.loop !== undefined;
  const prepared = isLoop ? null : await verifyFile(store, findings, preparedKey(run), PreparedFileSchema);
  if (file !== null && prepared !== null && file.agentCodeSha256 !== prepared.agentCodeSha256)
    findings.problem('run files', preparedKey(run), `it records other agent code than ${runKey(run)}`);
  if (prepared !== null) await verifyScenarios(store, run, prepared, findings);
  if (file !== null) await verifyBrought(store, file.config, findings);
  return { config: file?.config ?? null, prepared, isLoop, state: await verifyState(store, run, findings) };
}

async function verifyFile<T>(store: Store, findings: Findings, key: string, schema: z.ZodType<T>): Promise<T | null> {
  findings.count('run files');
  return findings.attempt('run files', key, async () => {
    const bytes = await store.read(key);
    if (bytes === null) throw new TemperError('StoreCorrupt', 'it is missing');
    return parseStored(schema, decodeJson(bytes, key), key);
  });
}

async function verifyScenarios(store: Store, run: string, prepared: Prepared, findings: Findings): Promise<void> {
  const { scenarios, trainScenarios, evalScenarios } = prepared;
  findings.count('run files');
  const file = await findings.attempt('run files', scenarios.key, () => openScenarioFile(store, scenarios));
  if (file === null) return;
  const lines = await countScenarios(store, file, findings);
  if (lines !== null && lines !== trainScenarios + evalScenarios)
    findings.problem(
      'run files',
      preparedKey(run),
      `it counts ${trainScenarios + evalScenarios} scenarios, but there are ${lines}`,
    );
  if (file.parts !== null) await verifyPartsFile(store, run, file, findings);
}

/** Null if a part is missing or broken, which is reported. */
async function countScenarios(
  store: Store,
  { ref, bytes, parts }: ScenarioFile,
  findings: Findings,
): Promise<number | null> {
  if (parts === null) return decodeJsonLines(bytes, ref.key).length;
  const counts: (number | null)[] = [];
  for (const { blob } of parts) {
    findings.count('run files');
    const read = async () => decodeJsonLines(await store.getBlob(blob), blob.key).length;
    counts.push(await findings.attempt('run files', blob.key, read));
  }
  return counts.reduce((sum, count) => (sum === null || count === null ? null : sum + count), 0);
}

/** Garbage collection finds the parts by this file. */
async function verifyPartsFile(store: Store, run: string, { ref }: ScenarioFile, findings: Findings): Promise<void> {
  findings.count('run files');
  const key = scenarioPartsKey(run, ref.sha256);
  const bytes = await store.read(key);
  if (bytes !== null && hashBytes(bytes) === ref.sha256) return;
  findings.problem('run files', key, bytes === null ? 'it is missing' : `it is not a copy of ${ref.key}`);
}

/** Checks the objects that the configuration names by hash. */
async function verifyBrought(store: Store, config: RunConfig, findings: Findings): Promise<void> {
  const verify = async (key: string, read: () => Promise<unknown>) => {
    findings.count('run files');
    await findings.attempt('run files', key, read);
  };
  const { supervised, rollout } = config;
  const { chatTemplateSha256: template } = rollout;
  if (template !== undefined) await verify(blobKey(template), () => readRunTemplate(store, config));
  for (const ref of blobsOfConfig(config))
    await verify(ref.key, () => (ref === supervised?.dataset ? readDataset(store, supervised) : store.getBlob(ref)));
}

/** Of the files for display, the one that says how far the run has come. */
async function verifyState(store: Store, run: string, findings: Findings): Promise<RunState | null> {
  const key = stateKey(run);
  const bytes = await store.read(key);
  if (bytes === null) return null;
  findings.count('run files');
  try {
    return parseState(decodeJson(bytes, key), run);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    findings.problem('run files', key, 'it cannot be read', REWRITTEN);
    return null;
  }
}
