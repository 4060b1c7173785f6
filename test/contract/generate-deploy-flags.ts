/** The flags of `temper deploy` that are of targets, and their table in docs/deployment.md (`npm run contract`). */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { DEPLOY_OPTIONS, DEPLOY_TARGETS } from '../../core/contract/deploy.ts';
import { GENERATED, kebabCase, kindOf, literal, plain, PLACEHOLDERS, unwrap } from './generate-flags.ts';

export const DEPLOY_FLAGS_FILE = fileURLToPath(new URL('../../operations/target-flag-table.ts', import.meta.url));
export const DEPLOYMENT_PAGE = fileURLToPath(new URL('../../docs/deployment.md', import.meta.url));

const NAMES = [...new Set(DEPLOY_TARGETS.flatMap((target) => Object.keys(DEPLOY_OPTIONS[target].shape)))];
const FLAGS = NAMES.map(flagOf);

/** An option that several targets have is described by the first of them. */
function flagOf(name: string) {
  const shapes = DEPLOY_TARGETS.map((target) => ({ target, shape: DEPLOY_OPTIONS[target].shape as z.ZodRawShape }));
  const having = shapes.filter(({ shape }) => shape[name] !== undefined);
  const schema = unwrap(having[0]!.shape[name] as z.ZodType);
  const meta = schema.meta()?.option;
  if (meta === undefined) throw new Error(`${name} must be described (core/contract/deploy.ts)`);
  const kind = kindOf({ schema });
  const placeholder = kind === 'boolean' ? undefined : (meta.placeholder ?? PLACEHOLDERS[kind]);
  const choices = schema instanceof z.ZodEnum ? schema.options : undefined;
  return { flag: kebabCase(name), targets: having.map(({ target }) => target), kind, choices, placeholder, meta };
}

export function generateDeployFlags(): string {
  const rows = FLAGS.map(({ flag, targets, meta, ...row }) => {
    const needs = targets.map((target) => `to ${target}`);
    const whole = { ...row, description: plain(meta.description), default: meta.default, needs };
    const given = Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== undefined));
    return `  ${literal(flag)}: ${literal(given)},`;
  });
  return `${GENERATED}
import type { Flags } from './flags.ts';

export const DEPLOY_TARGETS = ${literal(DEPLOY_TARGETS)} as const;

export const TARGET_FLAGS = {
${rows.join('\n')}
} as const satisfies Flags;
`;
}

/** The page with its table as it must be: between `<!-- flags -->` and the next empty line. */
export function generateDeploymentPage(page = readFileSync(DEPLOYMENT_PAGE, 'utf8')): string {
  const rows = FLAGS.map(({ flag, targets, placeholder, meta }) => {
    const words = placeholder === undefined ? `--${flag}` : `--${flag} ${placeholder}`;
    const fixed = meta.default === undefined ? '' : `; default: ${meta.default}`;
    return `| \`${words}\` | ${targets.join(', ')} | ${meta.description}${fixed} |`;
  });
  const table = `| flag | targets | meaning |\n| --- | --- | --- |\n${rows.join('\n')}\n`;
  return page.replace(/(<!-- flags -->\n).*?\n(?=\n)/s, (_, marker: string) => marker + table);
}
