/** docs/ui-api.md lists what the server and `temper mcp` offer. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MCP_TOOLS } from '../../cli/mcp/tools.ts';
import { VIEW_ROUTES } from '../../views/routes/routes.ts';

const PAGE = readFileSync(new URL('../../docs/ui-api.md', import.meta.url), 'utf8');

/** `runs/:run/steps/:step` as `runs/RUN/steps/STEP`. */
const shown = (path: string): string => path.replaceAll(/:(\w+)/g, (_, name: string) => name.toUpperCase());

test('each view is in the table of endpoints, with what it answers and its parameters', () => {
  for (const { path, about, query } of VIEW_ROUTES) {
    const parameters = path.endsWith('/attempts') ? [] : Object.entries(query);
    const told = parameters.map(([name, meaning]) => `\`${name}\`: ${meaning}`).join('; ');
    expect(PAGE).toContain(`| \`GET ${shown(path)}\` | ${about}${told === '' ? '' : ` ${told}`} |`);
  }
});

test('each filter of attempts is in its table', () => {
  const { query } = VIEW_ROUTES.find(({ path }) => path.endsWith('/attempts'))!;
  for (const [name, meaning] of Object.entries(query)) expect(PAGE).toContain(`| \`${name}\` | ${meaning} |`);
});

test('each tool of temper mcp is named, in the order of the endpoints', () => {
  const names = MCP_TOOLS.map(({ name }) => `\`${name}\``);
  expect(PAGE).toContain(`${names.slice(0, -1).join(', ')} and ${names.at(-1)}`);
});
