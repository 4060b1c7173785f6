/** The only writer of `run.json`. Write-once: a name has one configuration. */
import { createRequire } from 'node:module';

import { describeConfigDifferences } from '../../../core/rules/config-differences.ts';
import { omitDefaults, SCHEMA_DEFAULTS } from '../../../core/contract/schema-defaults.ts';
import { decodeJson, encodeJson } from '../../bytes/json.ts';
import { runKey } from '../../layout.ts';
import { refuseDeleted } from './deletions.ts';
import type { Store } from '../../store.ts';
import { parseStored, RunFileSchema } from '../file-schemas.ts';
import type { RunFile } from './run-reader.ts';

export type NewRun = Pick<RunFile, 'config' | 'agentCodeSha256' | 'loop'>;

export interface PublishedRun {
  /** Content of the store: written now, or by an earlier process. */
  recorded: RunFile;
  /** Between the recorded configuration and this one; then the name belongs to another run. */
  differences: string[];
}

export async function publishRun(store: Store, { config, agentCodeSha256, loop }: NewRun): Promise<PublishedRun> {
  const file = {
    schema: 1,
    config: omitDefaults(config, SCHEMA_DEFAULTS),
    agentCodeSha256,
    versions: { temper: temperVersion() },
    parent: config.parent,
    ...(loop === undefined ? {} : { loop }),
  };
  await refuseDeleted(store, config.run);
  const key = runKey(config.run);
  const { bytes } = await store.publish(key, encodeJson(file));
  const recorded = parseStored(RunFileSchema, decodeJson(bytes, key), key);
  return { recorded, differences: describeConfigDifferences(recorded.config, config) };
}

function temperVersion(): string {
  const { version } = createRequire(import.meta.url)('../../../package.json') as { version: string };
  return version;
}
