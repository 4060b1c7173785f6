import type { Argument, Definition, Flag } from './command.ts';

/** More flags than these are not listed one by one. */
const MOST_LISTED = 5;

/** What follows `temper`, e.g. `show RUN [--json]`. */
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
