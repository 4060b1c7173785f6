import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { badConfig } from '../../core/contract/failures.ts';
import { closestName } from '../../core/names/closest-name.ts';
import { EXIT } from '../command-line/errors.ts';
import type { InitContext } from './command.ts';
import { planFiles, type InitChoices, type PlannedFile } from './plan-files.ts';
import { TEMPLATE_NAMES, TEMPLATES, type TemplateName } from './templates.ts';

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
    throw badConfig(`FOLDER must be a folder, ${folder} is a file; choose another name`);
  const taken = [...files].filter(([name, { isCompleted }]) => !isCompleted && existsSync(join(folder, name)));
  if (taken.length === 0) return;
  const names = taken.map(([name]) => name).join(', ');
  throw badConfig(
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

/** Null for choices that were not given. */
export type GivenChoices = { readonly [Name in keyof InitChoices]: InitChoices[Name] | null };

/** An empty answer means the default. */
type Ask = (question: string) => Promise<string>;

/** Longest wait for a signal to this process. */
const SIGNAL_MS = 2000;

const ASK_NOTHING: Ask = () => Promise.resolve('');

/** Asks for missing choices: at most three, and none without a terminal. */
async function askForInit({ flags, args, output, signal }: InitContext): Promise<InitChoices> {
  const given = { folder: args.folder, template: flags.template, baseModel: flags['base-model'] };
  if (flags.yes || !output.isTerminal || !process.stdin.isTTY) return chooseInit(given, ASK_NOTHING);
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  // A terminal in raw mode delivers Ctrl-C and Ctrl-D to its reader, not as signals.
  const interrupt = () => void process.kill(process.pid, 'SIGINT');
  terminal.on('SIGINT', interrupt).on('close', interrupt);
  try {
    return await chooseInit(given, (question) => terminal.question(question, { signal }));
  } catch (error) {
    // Ctrl-D ends the question before the process hears of it.
    if (!signal.aborted) {
      interrupt();
      await sleep(SIGNAL_MS, undefined, { signal }).catch(() => undefined);
    }
    throw error;
  } finally {
    terminal.off('close', interrupt).close();
  }
}

export async function chooseInit(given: GivenChoices, ask: Ask): Promise<InitChoices> {
  const folder = given.folder ?? ((await ask('Folder [.]: ')).trim() || '.');
  const template = given.template ?? (await askTemplate(ask));
  const { baseModel } = TEMPLATES[template];
  const asked = `Base model, a name or a folder [${baseModel}]: `;
  return { folder, template, baseModel: given.baseModel ?? ((await ask(asked)).trim() || baseModel) };
}

/** Asks for a template by number or name until the answer is valid. */
async function askTemplate(ask: Ask): Promise<TemplateName> {
  const list = TEMPLATE_NAMES.map((name, index) => `  ${index + 1}  ${name}: ${TEMPLATES[name].summary}\n`).join('');
  for (let complaint = ''; ;) {
    const answer = (await ask(`${complaint}Template:\n${list}Number or name [plain]: `)).trim();
    const found = TEMPLATE_NAMES.find((name, index) => answer === name || answer === String(index + 1));
    if (found !== undefined || answer === '') return found ?? 'plain';
    const guess = closestName(answer, TEMPLATE_NAMES);
    complaint = `There is no template ${answer}${guess === null ? '' : `; did you mean ${guess}?`}\n`;
  }
}
