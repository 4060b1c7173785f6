import { appendFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { agentCodeSha256, findAgentFile, importAgentFile } from '../../../workers/user-code/agent-code.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let folder: string;

beforeEach(() => {
  folder = temporaryFolder();
  mkdirSync(join(folder, 'deep'));
  writeFileSync(
    join(folder, 'agent.ts'),
    `import { play } from './game.js';\nimport data from "./deep/data.json";\nexport default { play, data };\n`,
  );
  writeFileSync(join(folder, 'game.ts'), `export * from './deep/rules.ts';\n`);
  writeFileSync(join(folder, 'deep', 'rules.ts'), `export const play = (): number => 1;\n`);
  writeFileSync(join(folder, 'deep', 'data.json'), '{}');
  writeFileSync(join(folder, 'other.ts'), '');
});

const hash = () => agentCodeSha256(join(folder, 'agent.ts'));

it('changes with everything the agent imports of its own, and with nothing else', async () => {
  const before = await hash();
  writeFileSync(join(folder, 'other.ts'), 'changed');
  expect(await hash()).toBe(before);
  writeFileSync(join(folder, 'deep', 'rules.ts'), `export const play = (): number => 2;\n`);
  const changed = await hash();
  expect(changed).not.toBe(before);
  writeFileSync(join(folder, 'deep', 'data.json'), '{"a":1}');
  expect(await hash()).not.toBe(changed);
});

it('changes with what it imports by tsconfig.json and package.json, but not with comments and packages', async () => {
  writeFileSync(join(folder, 'tsconfig.json'), '{ "compilerOptions": { "paths": { "@/*": ["./deep/*"] } } }');
  writeFileSync(join(folder, 'package.json'), '{ "imports": { "#rules": "./deep/rules.ts" } }');
  writeFileSync(
    join(folder, 'agent.ts'),
    `// import './other.ts'\nimport '@/aliased';\nimport '#rules';\nimport './prompt.txt';\nimport 'no-such-package';\n`,
  );
  writeFileSync(join(folder, 'deep', 'aliased.ts'), `import './told.ts';\n`);
  const names = ['prompt.txt', 'deep/told.ts', 'deep/rules.ts', 'deep/aliased.ts', 'other.ts'];
  for (const name of names) appendFileSync(join(folder, name), '1;\n');
  const hashes = [await hash()];
  for (const name of names) {
    appendFileSync(join(folder, name), '2;\n');
    hashes.push(await hash());
  }
  expect(hashes.map((each) => hashes.indexOf(each))).toEqual([0, 1, 2, 3, 4, 4]);
});

it('is the same in another folder, and by a link to it', async () => {
  const before = await hash();
  const copy = join(folder, 'copy');
  for (const name of ['agent.ts', 'game.ts', 'deep']) cpSync(join(folder, name), join(copy, name), { recursive: true });
  expect(await agentCodeSha256(join(copy, 'agent.ts'))).toBe(before);
  mkdirSync(join(folder, 'a', 'b'), { recursive: true });
  symlinkSync(copy, join(folder, 'a', 'b', 'link'));
  expect(await agentCodeSha256(join(folder, 'a', 'b', 'link', 'agent.ts'))).toBe(before);
});

it('loads the default export of a TypeScript file', async () => {
  const agent = (await importAgentFile(join(folder, 'agent.ts'))) as { play: () => number };
  expect(agent.play()).toBe(1);
  await expect(importAgentFile(join(folder, 'none.ts'))).rejects.toMatchObject({ type: 'BadConfig' });
});

it('is refused by name in a folder whose name has a question mark', async () => {
  const odd = join(folder, 'really?');
  cpSync(join(folder, 'deep'), join(odd, 'deep'), { recursive: true });
  for (const name of ['agent.ts', 'game.ts']) cpSync(join(folder, name), join(odd, name));
  await expect(importAgentFile(join(odd, 'agent.ts'))).rejects.toThrow(
    /must have a path without "\?".*rename the folder/,
  );
});

it('loads JavaScript as Node does, whatever TypeScript stands beside it', async () => {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  for (const name of ['plain.ts', 'common.cts']) writeFileSync(join(folder, name), 'export default "TypeScript";\n');
  writeFileSync(join(folder, 'plain.js'), `export { default } from './told.js';\n`);
  writeFileSync(join(folder, 'told.js'), 'export default "a module";\n');
  writeFileSync(join(folder, 'told.ts'), 'export default "TypeScript";\n');
  writeFileSync(join(folder, 'common.cjs'), 'module.exports = "CommonJS";\n');
  writeFileSync(join(folder, 'compiled.cjs'), 'exports.__esModule = true; exports.default = "compiled";\n');
  expect(await importAgentFile(join(folder, 'plain.js'))).toBe('a module');
  expect(await importAgentFile(join(folder, 'common.cjs'))).toBe('CommonJS');
  expect(await importAgentFile(join(folder, 'compiled.cjs'))).toBe('compiled');
});

it('is a folder’s one agent file', () => {
  expect(findAgentFile(folder)).toBe(join(folder, 'agent.ts'));
  expect(() => findAgentFile(join(folder, 'deep'))).toThrow(/must have one agent\.ts .*deep has none; name the file/);
  writeFileSync(join(folder, 'agent.js'), '');
  expect(() => findAgentFile(folder)).toThrow(/has agent\.ts and agent\.js; name the file/);
});

it('changes with the files of a program that the agent names', async () => {
  const agent = `import { command } from 'temper-rl';
export default { rollout: command(['python3', 'play.py', '--fast'], { files: ['lib', 'prompt.txt'] }) };\n`;
  writeFileSync(join(folder, 'agent.ts'), agent);
  mkdirSync(join(folder, 'lib', '__pycache__'), { recursive: true });
  const hashes = [await hash()];
  for (const name of ['play.py', 'prompt.txt', 'lib/rules.py']) {
    writeFileSync(join(folder, name), 'x');
    hashes.push(await hash());
  }
  expect(new Set(hashes).size).toBe(4);
  writeFileSync(join(folder, 'lib', '__pycache__', 'rules.pyc'), 'x');
  writeFileSync(join(folder, 'other.py'), 'x');
  expect(await hash()).toBe(hashes.at(-1));
});
