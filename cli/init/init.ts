import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { EXIT, UsageError } from '../command-line/errors.ts';
import { askForInit, type InitChoices } from './ask.ts';
import type { InitContext } from './command.ts';
import { planFiles, type PlannedFile } from './plan-files.ts';

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

function nextLines(folder: string, { template }: InitChoices): string[] {
  const into = folder === '' ? '' : `cd ${/^[\w./-]+$/.test(folder) ? folder : JSON.stringify(folder)} && `;
  const commands =
    template === 'imperative'
      ? [`${into}npm install`, 'npm test', 'npm run train']
      : [`${into}npm install`, 'npx temper try', 'npx temper train'];
  return ['next:', ...commands.map((command) => `  ${command}`)];
}
