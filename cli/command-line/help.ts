/** Help texts and usage lines, from a command's definition. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Argument, Command, Definition, Flag } from './command.ts';

export function helpOf(command: Definition & Pick<Command, 'actions'>): string {
  const lines = [command.summary, '', `Usage: temper ${usageOf(command)}`];
  if (command.details !== undefined) lines.push('', ...command.details);
  if (command.actions !== undefined) lines.push('', 'Actions:', ...actionLines(command.actions));
  lines.push('', 'Options:', ...flagLines(command));
  if (command.examples !== undefined) lines.push('', 'Examples:', ...command.examples.map((example) => `  ${example}`));
  return lines.join('\n');
}

export function overview(commands: readonly Definition[], version: string): string {
  return [
    `temper ${version}: train LLM agents with reinforcement learning, durably`,
    '',
    'Usage: temper COMMAND [flags]',
    '',
    'Commands:',
    ...nameLines(commands),
    '',
    'See temper COMMAND --help. Exit codes: 0 done, 1 failed, 2 wrong input.',
  ].join('\n');
}

/** The package has the page beside its commands: `node_modules/temper-rl/docs/glossary.md`. */
const GLOSSARY = fileURLToPath(new URL('../../docs/glossary.md', import.meta.url));

export function glossaryLine(cwd: string): string {
  const path = relative(cwd, GLOSSARY);
  return `What the terms mean: ${path.startsWith('..') ? GLOSSARY : path}`;
}

function nameLines(commands: readonly Pick<Definition, 'name' | 'summary'>[]): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
}

/** Lines of actions, named by their second word. */
function actionLines(actions: readonly Definition[]): string[] {
  return nameLines(actions.map(({ name, summary }) => ({ name: name.split(' ')[1] ?? name, summary })));
}

function flagLines({ flags }: Definition): string[] {
  const rows = Object.entries(flags).map(
    ([name, flag]) => [flagColumn(name, flag), flag.description + shownDefault(flag) + alsoNamed(flag)] as const,
  );
  rows.push(['-h, --help', 'print this help']);
  const width = Math.max(...rows.map(([flag]) => flag.length));
  return rows.map(([flag, description]) => `  ${flag.padEnd(width)}  ${description}`);
}

function shownDefault(flag: Flag): string {
  return flag.default === undefined || isRequired(flag) ? '' : ` [${flag.default}]`;
}

function alsoNamed(flag: Flag): string {
  return flag.kind === 'boolean' || flag.also === undefined ? '' : ` (also --${flag.also})`;
}

function flagColumn(name: string, flag: Flag): string {
  if (flag.kind === 'boolean') return flag.negatable === true ? `--[no-]${name}` : `--${name}`;
  return `--${name} ${flag.placeholder}`;
}

/** Most flags that usage lists one by one. */
const MOST_LISTED = 5;

/** Usage after `temper`, e.g. `show RUN [--json]`. */
export function usageOf(command: Definition): string {
  if (command.usage !== undefined) return `${command.name} ${command.usage}`;
  const flags = Object.entries(command.flags);
  const required = flags.filter(([, flag]) => isRequired(flag));
  const others = flags.filter(([, flag]) => !isRequired(flag));
  return [
    command.name,
    ...Object.values(command.arguments).map(describeArgument),
    ...required.map(([name, flag]) => describeFlag(name, flag)),
    ...(others.length > MOST_LISTED ? ['[flags]'] : others.map(([name, flag]) => describeFlag(name, flag))),
  ].join(' ');
}

function isRequired(flag: Flag): boolean {
  return flag.kind !== 'boolean' && flag.required !== undefined;
}

function describeArgument({ placeholder, optional, repeats }: Argument): string {
  return `${optional === true ? `[${placeholder}]` : placeholder}${repeats === true ? '…' : ''}`;
}

function describeFlag(name: string, flag: Flag): string {
  const text = flag.kind === 'boolean' ? `--${name}` : `--${name} ${flag.placeholder}`;
  return `${isRequired(flag) ? text : `[${text}]`}${flag.kind === 'texts' ? '…' : ''}`;
}
