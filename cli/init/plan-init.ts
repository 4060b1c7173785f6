/** Content that `temper init` writes, planned before anything is written. */
import type { Template } from './templates.ts';

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
