import type { Command, CommandOption } from './command.ts';

export function commandHelp(command: Command): string {
  const lines = [command.summary, '', `Usage: temper ${command.usage}`];
  if (command.details !== undefined) lines.push('', ...command.details);
  if (command.actions !== undefined) lines.push('', 'Actions:', ...actionLines(command.actions));
  lines.push('', 'Options:', ...optionLines(command));
  if (command.examples !== undefined) lines.push('', 'Examples:', ...command.examples.map((example) => `  ${example}`));
  return lines.join('\n');
}

export function overview(commands: readonly Command[], version: string): string {
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

function nameLines(commands: readonly Pick<Command, 'name' | 'summary'>[]): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
}

/** By their second word: the first stands in the line above. */
function actionLines(actions: readonly Command[]): string[] {
  return nameLines(actions.map(({ name, summary }) => ({ name: name.split(' ')[1] ?? name, summary })));
}

function optionLines(command: Command): string[] {
  const rows = Object.entries(command.options).map(
    ([name, option]) => [flagColumn(name, option), option.description] as const,
  );
  rows.push(['-h, --help', 'print this help']);
  const width = Math.max(...rows.map(([flag]) => flag.length));
  return rows.map(([flag, description]) => `  ${flag.padEnd(width)}  ${description}`);
}

function flagColumn(name: string, option: CommandOption): string {
  const short = option.short === undefined ? '' : `-${option.short}, `;
  const value = option.type === 'string' ? ` ${option.placeholder ?? 'VALUE'}` : '';
  return `${short}--${name}${value}`;
}
