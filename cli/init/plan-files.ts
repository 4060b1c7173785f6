/** The files of a new project, planned before anything is written. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { badConfig } from '../../core/contract/failures.ts';
import { dependencyOnThis } from '../../workers/version.ts';
import { TEMPLATES, type Template, type TemplateName } from './templates.ts';

const TEMPLATES_FOLDER = fileURLToPath(new URL('./templates/', import.meta.url));

export interface InitChoices {
  readonly folder: string;
  readonly template: TemplateName;
  readonly baseModel: string;
}

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
  throw badConfig(`${file} must be a JSON object, but is not; correct it, or choose another folder`);
}

function readText(file: string): string | null {
  return existsSync(file) ? readFileSync(file, 'utf8') : null;
}

/** Versions that Temper itself is tested with. */
const DEVELOPMENT = { '@types/node': '^20.19.0', typescript: '^7.0.2', vitest: '^4.1.12' } as const;
const IGNORED = ['node_modules/', '.temper/'];

/** Default test script of `npm init`. */
const NO_TEST = /no test specified/;
const LONGEST_NAME = 214;

/** Package name that npm accepts, from a folder's name. */
export function packageNameOf(folder: string): string {
  const name = folder
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+/, '')
    .replace(/(?<![._-])[._-]+$/, '')
    .slice(0, LONGEST_NAME);
  return name === '' || name === 'node_modules' || name === 'temper-rl' ? 'my-agent' : name;
}

type Manifest = Readonly<Record<string, unknown>>;

export interface PlannedManifest {
  readonly manifest: Manifest;
  /** Additions to an existing one, such as `scripts.train`. */
  readonly added: readonly string[];
}

/** Adds what is missing and keeps the rest. `existing`: null if there is no package.json. */
export function planManifest(
  existing: Manifest | null,
  { name, temper, template }: { name: string; temper: string; template: Pick<Template, 'scripts' | 'dependencies'> },
): PlannedManifest {
  const added: string[] = [];
  const fill = (member: string, wanted: Readonly<Record<string, string>>, has: (key: string) => boolean) => {
    const known = (existing?.[member] ?? {}) as Readonly<Record<string, string>>;
    const missing = Object.entries(wanted).filter(([key]) => !has(key));
    added.push(...missing.map(([key]) => `${member}.${key}`));
    return { ...known, ...Object.fromEntries(missing) };
  };
  const members = ['dependencies', 'devDependencies', 'peerDependencies'];
  const isInstalled = (key: string) => members.some((member) => Object.hasOwn(objectOf(existing?.[member]), key));
  const scripts = objectOf(existing?.['scripts']);
  const hasScript = (key: string) => Object.hasOwn(scripts, key) && !NO_TEST.test(String(scripts[key]));
  const isModule = existing !== null && existing['type'] !== undefined;
  if (!isModule) added.push('type');
  const manifest = {
    ...(existing ?? { name, private: true }),
    ...(isModule ? {} : { type: 'module' }),
    scripts: fill('scripts', template.scripts, hasScript),
    dependencies: fill('dependencies', { 'temper-rl': temper, ...template.dependencies }, isInstalled),
    devDependencies: fill('devDependencies', DEVELOPMENT, isInstalled),
  };
  return { manifest, added: existing === null ? [] : added };
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** Appends missing lines. */
export function planIgnored(existing: string | null): string {
  const lines = (existing ?? '').split('\n').map((line) => line.trim().replace(/^\/|\/$/g, ''));
  const missing = IGNORED.filter((line) => !lines.includes(line.replace(/\/$/, '')));
  const before = existing === null || existing === '' || existing.endsWith('\n') ? (existing ?? '') : `${existing}\n`;
  return `${before}${missing.map((line) => `${line}\n`).join('')}`;
}

/** Matches the comment with the lines below it, which are for the pocket models. */
const POCKET_ONLY = /^ *\/\/ For the pocket model.*\n(?: *(?:'[^']+'|\w+): .*,\n)*/gm;

/** Replaces the base model in a template's file; others learn with Temper's defaults. */
export function withBaseModel(text: string, baseModel: string): string {
  const named = text.replaceAll(
    /('base-model'|baseModel): '[^']*'/g,
    (_, name: string) => `${name}: ${quote(baseModel)}`,
  );
  return named.replaceAll(POCKET_ONLY, '');
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
