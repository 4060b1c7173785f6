import type { Definition, Flag } from './command.ts';
import { usageOf } from './usage.ts';

interface Helped extends Definition {
  readonly actions?: readonly Definition[];
}

/** `descriptions` go before those of the definition. */
export function commandHelp(command: Helped, descriptions: Readonly<Record<string, string>> = {}): string {
  const lines = [command.summary, '', `Usage: temper ${usageOf(command)}`];
  if (command.details !== undefined) lines.push('', ...command.details);
  if (command.actions !== undefined) lines.push('', 'Actions:', ...actionLines(command.actions));
  lines.push('', 'Options:', ...flagLines(command, descriptions));
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

function nameLines(commands: readonly Pick<Definition, 'name' | 'summary'>[]): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
}

/** By their second word: the first stands in the line above. */
function actionLines(actions: readonly Definition[]): string[] {
  return nameLines(actions.map(({ name, summary }) => ({ name: name.split(' ')[1] ?? name, summary })));
}

function flagLines({ flags }: Definition, descriptions: Readonly<Record<string, string>>): string[] {
  const rows = Object.entries(flags).map(
    ([name, flag]) => [flagColumn(name, flag), (descriptions[name] ?? flag.description) + alsoNamed(flag)] as const,
  );
  rows.push(['-h, --help', 'print this help']);
  const width = Math.max(...rows.map(([flag]) => flag.length));
  return rows.map(([flag, description]) => `  ${flag.padEnd(width)}  ${description}`);
}

function alsoNamed(flag: Flag): string {
  return flag.kind === 'boolean' || flag.also === undefined ? '' : ` (also --${flag.also})`;
}

function flagColumn(name: string, flag: Flag): string {
  if (flag.kind === 'boolean') return flag.negatable === true ? `--[no-]${name}` : `--${name}`;
  return `--${name} ${flag.placeholder}`;
}
