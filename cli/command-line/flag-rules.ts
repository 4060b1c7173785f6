/** Rules between the flags of one command: what a flag needs, and what it excludes. Help and docs/commands.md show them. */
import { badConfig } from '../../core/contract/failures.ts';
import type { Flag, Flags } from '../../operations/flags.ts';

/** `given`: the last text of each flag that was given and not negated. Rules about flags that a command lacks do not apply. */
export function checkFlagRules(flags: Flags, given: ReadonlyMap<string, string>): void {
  const isGiven = (rule: string) => {
    const [name = '', value] = rule.split(' ');
    return given.has(name) && (value === undefined || given.get(name) === value);
  };
  for (const name of given.keys()) {
    const { needs = [], excludes = [] } = flags[name] ?? {};
    const known = needs.filter((rule) => Object.hasOwn(flags, rule.split(' ')[0]!));
    if (known.length > 0 && !known.some(isGiven))
      throw badConfig(`--${name} has no effect without ${either(known)}; pass both, or leave it out`);
    const other = excludes.find(isGiven);
    if (other !== undefined) throw badConfig(`--${name} and --${other} exclude each other; leave one of them out`);
  }
}

/** ` (with --model)`, ` (not with --all)`; empty without a rule. */
export function describeFlagRules({ needs = [], excludes = [] }: Pick<Flag, 'needs' | 'excludes'>): string {
  const rules = [
    ...(needs.length === 0 ? [] : [`with ${either(needs)}`]),
    ...(excludes.length === 0 ? [] : [`not with ${either(excludes)}`]),
  ];
  return rules.length === 0 ? '' : ` (${rules.join(', ')})`;
}

/** `--a, --b or --c`; `--to x, y or z` for several values of one flag. */
function either(rules: readonly string[]): string {
  const names = rules.map((rule, index) => {
    const [flag, value] = rule.split(' ');
    return value !== undefined && rules[index - 1]?.split(' ')[0] === flag ? value : `--${rule}`;
  });
  return [names.slice(0, -1).join(', '), ...names.slice(-1)].filter((text) => text !== '').join(' or ');
}
