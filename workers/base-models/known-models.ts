/** Which base models this project knows by name: those of temporal.config.ts, and those that were once named on the command line. */
import { join, resolve } from 'node:path';
import { BASE_MODEL_PATTERN } from '../../core/contract/contract.ts';
import { badConfig } from '../../core/contract/failures.ts';
import { HUB_PREFIX, S3_SCHEME } from '../../core/contract/wire-constants.ts';
import type { TemperConfig } from '../config/config.ts';
import { makeProjectFolders, projectFolders } from '../project/folders.ts';
import { readOwnFile, writeAtomically } from '../project/own-file.ts';

/** Name → folder, `hub:OWNER/NAME` or `s3://BUCKET/PREFIX`. */
export type Models = Readonly<Record<string, string>>;

/** Empty if the file is missing or unreadable: it is written anew. */
export function readModels(file: string): Models {
  try {
    const models = Object.entries(JSON.parse(readOwnFile(file) ?? '') as Record<string, unknown>);
    return Object.fromEntries(models.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
  } catch {
    return {};
  }
}

export function knownModels(project: string, { models }: Pick<TemperConfig, 'models'>): Models {
  return { ...readModels(projectFolders(project).models), ...absoluteModels(project, models) };
}

/** For a GPU worker outside the local stack, whose own file the stack rewrites. */
export function writeKnownModels(project: string, config: Pick<TemperConfig, 'models'>): string {
  const file = join(makeProjectFolders(project).state, 'known-models.json');
  writeAtomically(file, `${JSON.stringify(knownModels(project, config), null, 2)}\n`);
  return file;
}

/** Resolves folders, so that the GPU worker finds them from anywhere. */
export function absoluteModels(project: string, models: Models): Models {
  return Object.fromEntries(
    Object.entries(models).map(([name, source]) => [
      modelName(name),
      [HUB_PREFIX, S3_SCHEME].some((prefix) => source.startsWith(prefix)) ? source : resolve(project, source),
    ]),
  );
}

function modelName(name: string): string {
  if (BASE_MODEL_PATTERN.test(name)) return name;
  throw badConfig(`a model's name must be made of letters, digits, dots, dashes and slashes, got ${name}; rename it`);
}
