/** Mistakes that a person can make in an agent's file: one line, exit code 2, and nothing left behind. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { write, writeAgent } from './agents.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn } from './run-cli.ts';

let project: string;
let agent: string;

beforeEach(async () => {
  project = await temporaryProject();
  agent = await writeAgent(project);
});

const complaint = (args: readonly string[]) => complaintIn(project, args);

const train = (...flags: string[]) => complaint(['train', agent, '--base-model', 'pocket', ...flags]);

/** What the file holds, and what is said of it behind its name; the remedy that every complaint has is not repeated. */
test.each<[text: string | Parameters<typeof writeAgent>[1], said: string]>([
  [{ exported: 'export const agent =' }, 'must have defineAgent({ … }) as its default export'],
  ["export default { name: 'guess' };\n", 'must have defineAgent({ … }) as its default export'],
  [
    'const nothing: any = null;\n\nexport default nothing.agent;\n',
    "cannot be loaded: TypeError: Cannot read properties of null (reading 'agent')",
  ],
  ["import 'ai-of-nobody';\nexport default 1;\n", '; install it with npm install ai-of-nobody'],
  ["import '@nobody/openai/chat';\nexport default 1;\n", '; install it with npm install @nobody/openai'],
  [{ scenarios: '[]' }, 'the agent guess has no scenarios (PROJECT/agent.ts); add at least one'],
  [{ scenarios: "[{ id: 'only' }]" }, 'the agent guess has one scenario (PROJECT/agent.ts), but a tenth is held out'],
  [
    { scenarios: "[{ id: 'a' }, { id: 'a' }]" },
    'unique, among evalScenarios too, got "a" at scenarios[0] and scenarios[1]',
  ],
])('%j', async (text, said) => {
  await (typeof text === 'string' ? writeFile(agent, text) : writeAgent(project, text));
  expect(await train()).toContain(said);
});

test('a file that does not exist', async () => {
  expect(await complaint(['train', 'nope.ts', '--base-model', 'pocket'])).toContain(
    'the agent file PROJECT/nope.ts does not exist',
  );
});

test.each(['mjs', 'cjs'])('a syntax error in an agent.%s names its line', async (ending) => {
  const file = join(project, `wrong.${ending}`);
  await writeFile(file, 'const a = 1;\n\nconst b = [,,}];\n');
  expect(await complaint(['train', file, '--base-model', 'pocket'])).toBe(
    `temper: the agent file PROJECT/wrong.${ending} cannot be loaded: SyntaxError: Unexpected token '}' (line 3)`,
  );
});

test('a syntax error in a module that it imports names that file', async () => {
  await writeFile(join(project, 'helper.mjs'), 'const b = [,,}];\n');
  await writeFile(join(project, 'importing.mjs'), "import './helper.mjs';\n");
  expect(await complaint(['train', 'importing.mjs', '--base-model', 'pocket'])).toBe(
    "temper: the agent file PROJECT/importing.mjs cannot be loaded: SyntaxError: Unexpected token '}' (PROJECT/helper.mjs:1)",
  );
});

test.each([
  ['id,question\n', "'rows.csv'", 'the agent guess has no scenarios (PROJECT/agent.ts); add at least one'],
  ['id\na\n', "csv('rows.csv', { separator: ';' })", 'csv has the options map, delimiter, got separator; correct its'],
  [
    'id\na\n',
    "csv('rows.csv', { map: (row) => ({ id: row.id.no.thing }) })",
    "it threw at line 2 of PROJECT/rows.csv: TypeError: Cannot read properties of undefined (reading 'thing')",
  ],
  [
    'id\na\n',
    "csv('rows.csv', { map: ({ name }) => ({ id: name }) })",
    'Error: PROJECT/rows.csv has no column "name", only id; correct map, or return null to leave a row out',
  ],
])('a CSV file %j as %s', async (rows, scenarios, message) => {
  await write(join(project, 'rows.csv'), rows);
  await writeAgent(project, { scenarios });
  expect(await train()).toContain(message);
});
