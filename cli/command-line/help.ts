/** Help texts and usage lines, from a command's definition. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GROUPS, type Argument, type Definition, type Flag } from '../../operations/flags.ts';
import type { Command } from './command.ts';
import { describeFlagRules } from './flag-rules.ts';

/** `isWhole`: every flag of a command that has many, for `--help all`. */
export function helpOf(command: Definition & Pick<Command, 'actions'>, isWhole = false): string {
  const lines = [command.summary, '', `Usage: temper ${usageOf(command)}`];
  if (command.details !== undefined) lines.push('', ...command.details);
  if (command.actions !== undefined) lines.push('', 'Actions:', ...actionLines(command.actions));
  lines.push(...flagLines(command, isWhole));
  if (command.examples !== undefined) lines.push('', 'Examples:', ...command.examples.map((example) => `  ${example}`));
  return lines.join('\n');
}

/** Commands under their headings. */
export function overview(commands: readonly Pick<Definition, 'name' | 'group' | 'summary'>[], version: string): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    `temper ${version}: train LLM agents with reinforcement learning, durably`,
    '',
    'Usage: temper COMMAND [flags]',
    ...GROUPS.flatMap((group) => {
      return [
        '',
        `${group}:`,
        ...nameLines(
          commands.filter((command) => command.group === group),
          width,
        ),
      ];
    }),
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

function nameLines(commands: readonly Pick<Definition, 'name' | 'summary'>[], least = 0): string[] {
  const width = Math.max(least, ...commands.map(({ name }) => name.length));
  return commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
}

/** Lines of actions, named by their second word. */
function actionLines(actions: readonly Definition[]): string[] {
  return nameLines(actions.map(({ name, summary }) => ({ name: name.split(' ')[1] ?? name, summary })));
}

const OPTIONS = 'Options';
/** Flags above which help shows the main ones alone, under headings. */
const MANY_FLAGS = 25;

function flagLines({ name, flags }: Definition, isWhole: boolean): string[] {
  const all = Object.entries(flags);
  const hasMany = all.length > MANY_FLAGS;
  const shown = hasMany && !isWhole ? all.filter(([, flag]) => flag.isMain === true || isRequired(flag)) : all;
  const rows = shown.map(([flagName, flag]) => ({
    heading: (hasMany ? flag.heading : undefined) ?? OPTIONS,
    column: flagColumn(flagName, flag),
    description: flag.description + describeFlagRules(flag) + shownDefault(flag) + alsoNamed(flag),
  }));
  rows.push({ heading: OPTIONS, column: '-h, --help', description: 'print this help' });
  const width = Math.max(...rows.map(({ column }) => column.length));
  const linesOf = ({ column, description }: (typeof rows)[number]) =>
    wrap(description, COLUMNS - width - 4).map(
      (line, index) => `  ${(index === 0 ? column : '').padEnd(width)}  ${line}`,
    );
  const titled = new Set(rows.map(({ heading }) => heading).filter((heading) => heading !== OPTIONS));
  const lines = [...titled, OPTIONS].flatMap((heading) => [
    '',
    `${heading}:`,
    ...rows.filter((row) => row.heading === heading).flatMap(linesOf),
  ]);
  if (shown.length === all.length) return lines;
  return [...lines, '', `These are ${shown.length} of ${all.length} flags. All of them: temper ${name} --help all`];
}

/** Columns of a line, as far as its words let it. */
const COLUMNS = 110;

export function wrap(text: string, columns: number): string[] {
  return text.split(' ').reduce<string[]>((lines, word) => {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > columns) return [...lines, word];
    return [...lines.slice(0, -1), `${line} ${word}`];
  }, []);
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
