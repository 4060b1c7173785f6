import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { dependencyOnThis } from '../../workers/version.ts';
import { askForInit, type InitChoices } from './ask.ts';
import type { InitContext } from './command.ts';
import { packageNameOf, planIgnored, planManifest, withBaseModel } from './plan-init.ts';
import { TEMPLATES, type TemplateName } from './templates.ts';

const TEMPLATES_FOLDER = fileURLToPath(new URL('./templates/', import.meta.url));

export async function init(context: InitContext): Promise<number> {
  const { cwd, output } = context;
  const choices = await askForInit(context);
  const folder = resolve(cwd, choices.folder);
  const files = planFiles(folder, choices);
  checkFree(folder, files);
  mkdirSync(folder, { recursive: true });
  const notes = [...files].flatMap(([name, { text, note }]) => {
    writeFileSync(join(folder, name), text);
    return note === null ? [] : [note];
  });
  const shown = relative(cwd, folder);
  output.line(`${[...files.keys()].join(', ')} written${shown === '' ? '' : ` to ${shown}`}`);
  for (const note of notes) output.line(note);
  for (const line of nextLines(shown, choices)) output.line(line);
  return EXIT.ok;
}

interface PlannedFile {
  readonly text: string;
  /** Note about an existing file that was completed. */
  readonly note: string | null;
  /** True if the file may exist: its content stays. */
  readonly isCompleted: boolean;
}

function planFiles(folder: string, { template, baseModel }: InitChoices): Map<string, PlannedFile> {
  const files = new Map<string, PlannedFile>();
  const { baseModel: usual, extends: base } = TEMPLATES[template];
  for (const name of [base ?? template, template].flatMap(filesOf)) {
    const text = readFileSync(join(TEMPLATES_FOLDER, name), 'utf8');
    const adapted = baseModel === usual ? text : withBaseModel(text, baseModel);
    files.set(basename(name), { text: adapted, note: null, isCompleted: false });
  }
  if (!existsSync(join(folder, 'tsconfig.json'))) {
    const text = readFileSync(join(TEMPLATES_FOLDER, 'tsconfig.project.json'), 'utf8');
    files.set('tsconfig.json', { text, note: null, isCompleted: false });
  }
  files.set('.gitignore', { text: planIgnored(readText(join(folder, '.gitignore'))), note: null, isCompleted: true });
  files.set('package.json', planPackage(folder, template));
  return files;
}

/** Paths below the folder of templates. */
function filesOf(template: TemplateName): string[] {
  return readdirSync(join(TEMPLATES_FOLDER, template)).map((name) => join(template, name));
}

function planPackage(folder: string, template: TemplateName): PlannedFile {
  const file = join(folder, 'package.json');
  const existing = readText(file);
  const names = { name: packageNameOf(basename(folder)), temper: dependencyOnThis(), template: TEMPLATES[template] };
  const { manifest, added } = planManifest(existing === null ? null : parseManifest(existing, file), names);
  const note = added.length === 0 ? null : `package.json existed: added ${added.join(', ')}`;
  return { text: `${JSON.stringify(manifest, null, 2)}\n`, note, isCompleted: true };
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

function checkFree(folder: string, files: ReadonlyMap<string, PlannedFile>): void {
  if (existsSync(folder) && !statSync(folder).isDirectory())
    throw new UsageError(`FOLDER must be a folder, ${folder} is a file; choose another name`);
  const taken = [...files].filter(([name, { isCompleted }]) => !isCompleted && existsSync(join(folder, name)));
  if (taken.length === 0) return;
  const names = taken.map(([name]) => name).join(', ');
  throw new UsageError(
    `temper init overwrites nothing, and ${folder} has ${names}; choose another folder, or move ${taken.length === 1 ? 'it' : 'them'} away`,
  );
}

function readText(file: string): string | null {
  return existsSync(file) ? readFileSync(file, 'utf8') : null;
}

function nextLines(folder: string, { template }: InitChoices): string[] {
  const into = folder === '' ? '' : `cd ${/^[\w./-]+$/.test(folder) ? folder : JSON.stringify(folder)} && `;
  const commands =
    template === 'imperative'
      ? [`${into}npm install`, 'npm test', 'npm run train']
      : [`${into}npm install`, 'npx temper try', 'npx temper train'];
  return ['next:', ...commands.map((command) => `  ${command}`)];
}
