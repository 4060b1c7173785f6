/** The files of a new project, planned before anything is written. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dependencyOnThis } from '../../workers/version.ts';
import { UsageError } from '../command-line/errors.ts';
import type { InitChoices } from './ask.ts';
import { packageNameOf, planIgnored, planManifest, withBaseModel } from './plan-init.ts';
import { TEMPLATES, type Template, type TemplateName } from './templates.ts';

const TEMPLATES_FOLDER = fileURLToPath(new URL('./templates/', import.meta.url));

export interface PlannedFile {
  readonly text: string;
  /** Note about an existing file that was completed. */
  readonly note: string | null;
  /** True if the file may exist: its content stays. */
  readonly isCompleted: boolean;
}

export function planFiles(folder: string, { template, baseModel }: InitChoices): Map<string, PlannedFile> {
  const { extends: base } = TEMPLATES[template];
  const files = [base ?? template, template].flatMap(filesOf).map((path) => {
    const text = adaptedFile(path, TEMPLATES[template], baseModel);
    return [basename(path), { text, note: null, isCompleted: false }] as const;
  });
  return new Map([...files, ...planPackage(folder, TEMPLATES[template])]);
}

/** Paths below the folder of templates. */
function filesOf(template: TemplateName): string[] {
  return readdirSync(join(TEMPLATES_FOLDER, template)).map((name) => join(template, name));
}

/** A template's file for another base model. */
export function adaptedFile(
  path: string,
  { baseModel: usual }: Pick<Template, 'baseModel'>,
  baseModel: string,
): string {
  const text = readFileSync(join(TEMPLATES_FOLDER, path), 'utf8');
  return baseModel === usual ? text : withBaseModel(text, baseModel);
}

/** The files that make a folder a package of TypeScript. */
export function planPackage(
  folder: string,
  template: Pick<Template, 'dependencies' | 'scripts'>,
): [string, PlannedFile][] {
  const tsconfig = existsSync(join(folder, 'tsconfig.json')) ? [] : [tsconfigFile()];
  const ignored = planIgnored(readText(join(folder, '.gitignore')));
  const file = join(folder, 'package.json');
  const existing = readText(file);
  const names = { name: packageNameOf(basename(folder)), temper: dependencyOnThis(), template };
  const { manifest, added } = planManifest(existing === null ? null : parseManifest(existing, file), names);
  const note = added.length === 0 ? null : `package.json existed: added ${added.join(', ')}`;
  return [
    ...tsconfig,
    ['.gitignore', { text: ignored, note: null, isCompleted: true }],
    ['package.json', { text: `${JSON.stringify(manifest, null, 2)}\n`, note, isCompleted: true }],
  ];
}

function tsconfigFile(): [string, PlannedFile] {
  const text = readFileSync(join(TEMPLATES_FOLDER, 'tsconfig.project.json'), 'utf8');
  return ['tsconfig.json', { text, note: null, isCompleted: false }];
}

function parseManifest(text: string, file: string): Record<string, unknown> {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The error below covers every kind of mistake.
  }
  throw new UsageError(`${file} must be a JSON object, but is not; correct it, or choose another folder`);
}

function readText(file: string): string | null {
  return existsSync(file) ? readFileSync(file, 'utf8') : null;
}
