/** `temper init`: what it writes, what it leaves alone, and what it asks. The templates' own tests run beside these. */
import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { chooseInit, type GivenChoices } from '../../cli/init/init.ts';
import { packageNameOf, planIgnored, planManifest, withBaseModel } from '../../cli/init/plan-files.ts';
import { TEMPLATE_NAMES, TEMPLATES } from '../../cli/init/templates.ts';
import manifest from '../../package.json' with { type: 'json' };
import { ROOT } from '../docs/markdown.ts';
import { temperCommand } from '../stack.ts';
import { runCli } from './run-cli.ts';
import { temporaryFolder } from '../temporary-folder.ts';

let folder: string;
beforeEach(async () => {
  folder = temporaryFolder();
});

const read = (...path: string[]) => readFile(join(folder, ...path), 'utf8');
const readManifest = async (...path: string[]) => JSON.parse(await read(...path, 'package.json')) as typeof manifest;
const init = (...args: string[]) => runCli(folder, ['init', ...args]);

test('an empty folder becomes a project, and nobody is asked without a terminal', async () => {
  const { exitCode, stdout, stderr } = await init();
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toMatch(/ package.json written\nnext:\n {2}npm install\n {2}npx temper try\n {2}npx temper train$/);
  expect((await readdir(folder)).toSorted()).toEqual([
    '.gitignore',
    'agent.test.ts',
    'agent.ts',
    'package.json',
    'temporal.config.ts',
    'tsconfig.json',
  ]);
  expect(await read('.gitignore')).toBe('node_modules/\n.temper/\n');
});

test.each(TEMPLATE_NAMES)('the template %s goes into a new folder, as it is', async (template) => {
  const { exitCode, stdout } = await init('my-agent', '--template', template, '--yes');
  expect(exitCode).toBe(0);
  expect(stdout).toContain('  cd my-agent && npm install\n');
  const templates = new URL('../../cli/init/templates/', import.meta.url);
  const own = await readdir(new URL(template, templates));
  const inherited = (await readdir(new URL(TEMPLATES[template].extends ?? template, templates))).filter(
    (file) => !own.includes(file),
  );
  const expected = [
    ...own.map((file) => `${template}/${file}`),
    ...inherited.map((file) => `${TEMPLATES[template].extends}/${file}`),
  ];
  for (const path of expected)
    expect(await read('my-agent', basename(path))).toBe(await readFile(new URL(path, templates), 'utf8'));
  expect(expected.map((path) => basename(path))).toContain('temporal.config.ts');
  const { name, scripts, dependencies } = await readManifest('my-agent');
  expect(name).toBe('my-agent');
  expect(scripts).toEqual(TEMPLATES[template].scripts);
  expect(dependencies).toEqual({ 'temper-rl': `file:${ROOT}dist`, ...TEMPLATES[template].dependencies });
});

test('another base model stands in the configuration, without what only the pocket models need', async () => {
  await init('--base-model', 'Qwen/Qwen3-4B', '--yes');
  const config = await read('temporal.config.ts');
  expect(config).toContain("  train: {\n    'base-model': 'Qwen/Qwen3-4B',\n  },\n");
  expect(config).not.toContain('learning-rate');
  expect(withBaseModel("baseModel: 'pocket' });", "./o'clock")).toBe("baseModel: './o\\'clock' });");
});

describe('what exists', () => {
  test('is never overwritten: all of it is named, and nothing is written', async () => {
    await writeFile(join(folder, 'agent.ts'), 'mine');
    await writeFile(join(folder, 'temporal.config.ts'), 'mine');
    const { exitCode, stdout, stderr } = await init();
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toBe(
      `temper: temper init overwrites nothing, and ${folder} has agent.ts, temporal.config.ts; choose another folder, or move them away`,
    );
    expect((await readdir(folder)).toSorted()).toEqual(['agent.ts', 'temporal.config.ts']);
  });

  test('package.json and .gitignore get what they lack, and tsconfig.json is kept', async () => {
    const own = {
      name: '@me/shop',
      type: 'commonjs',
      scripts: { test: 'mine' },
      dependencies: { 'temper-rl': 'file:x.tgz' },
    };
    await writeFile(join(folder, 'package.json'), JSON.stringify(own));
    await writeFile(join(folder, '.gitignore'), '/node_modules\ndist');
    await writeFile(join(folder, 'tsconfig.json'), '{}');
    const { exitCode, stdout } = await init();
    expect(exitCode).toBe(0);
    expect(stdout).toContain(
      'package.json existed: added scripts.try, scripts.train, devDependencies.@types/node, devDependencies.typescript, devDependencies.vitest',
    );
    expect(await readManifest()).toMatchObject({
      ...own,
      scripts: { test: 'mine', try: 'temper try', train: 'temper train' },
      dependencies: { 'temper-rl': 'file:x.tgz' },
    });
    expect(await read('.gitignore')).toBe('/node_modules\ndist\n.temper/\n');
    expect(await read('tsconfig.json')).toBe('{}');
  });

  test('npm’s own placeholder is no test', () => {
    const existing = { type: 'module', scripts: { test: 'echo "Error: no test specified" && exit 1' } };
    const { manifest: planned } = planManifest(existing, { name: 'a', temper: '^1.0.0', template: TEMPLATES.plain });
    expect(planned['scripts']).toMatchObject({ test: 'vitest run' });
  });

  test('a file in the folder’s place, and a package.json that is none', async () => {
    await writeFile(join(folder, 'taken'), '');
    expect(await init('taken')).toMatchObject({
      exitCode: 2,
      stderr: `temper: FOLDER must be a folder, ${join(folder, 'taken')} is a file; choose another name`,
    });
    await mkdir(join(folder, 'broken'));
    await writeFile(join(folder, 'broken', 'package.json'), '[');
    expect(await init('broken')).toMatchObject({
      exitCode: 2,
      stderr: `temper: ${join(folder, 'broken', 'package.json')} must be a JSON object, but is not; correct it, or choose another folder`,
    });
    expect(await readdir(join(folder, 'broken'))).toEqual(['package.json']);
  });
});

test.each([
  ['my-agent', 'my-agent'],
  ['My Agent (2)', 'my-agent-2'],
  ['Süßes', 'su-es'],
  ['.hidden_', 'hidden'],
  ['日本', 'my-agent'],
  ['node_modules', 'my-agent'],
  ['x'.repeat(300), 'x'.repeat(214)],
])('a folder named %s makes the package %s', (name, expected) => {
  expect(packageNameOf(name)).toBe(expected);
});

test('lines of .gitignore are found however they are written', () => {
  expect(planIgnored(null)).toBe('node_modules/\n.temper/\n');
  expect(planIgnored('.temper\nnode_modules\n')).toBe('.temper\nnode_modules\n');
});

describe('on a real terminal', () => {
  const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  /** Each question with what is typed once it stands there. */
  const type = (...typed: [string, string][]) => {
    const python = process.env['TEMPER_PYTHON'] ?? 'python3';
    const command = [...temperCommand(), 'init'];
    const { status, stdout } = spawnSync(python, [here('terminal.py'), JSON.stringify(typed), ...command], {
      cwd: folder,
      encoding: 'utf8',
    });
    return { status, stdout };
  };

  test('the questions are answered by typing, and the project stands in the folder that was typed', async () => {
    const template = '[plain]: ';
    const { status, stdout } = type(
      ['Folder [.]: ', 'shop\r'],
      [template, 'tolls\r'],
      [template, '2\r'],
      ['[pocket-tools]: ', '\r'],
    );
    expect(stdout).toContain('There is no template tolls; did you mean tools?');
    expect({ status, stdout }).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('written to shop') as string,
    });
    expect(await read('shop', 'agent.ts')).toContain('toolLoop');
  });

  test.each([
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
  ])('%s at a question ends with 130, and nothing is written', async (_, key) => {
    expect(type(['Folder [.]: ', 'shop\r'], ['[plain]: ', key]).status).toBe(130);
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('on a terminal', () => {
  async function choose(given: Partial<GivenChoices>, ...answers: string[]) {
    const questions: string[] = [];
    const ask = (question: string) => {
      questions.push(question);
      return Promise.resolve(answers[questions.length - 1] ?? '');
    };
    return { chosen: await chooseInit({ folder: null, template: null, baseModel: null, ...given }, ask), questions };
  }

  test('three things are asked, each with its default', async () => {
    const { chosen, questions } = await choose({});
    expect(chosen).toEqual({ folder: '.', template: 'plain', baseModel: 'pocket' });
    expect(questions).toHaveLength(3);
    expect(questions[1]).toContain('  2  tools: ');
  });

  test('a template is chosen by number or name, and asked for again where it is neither', async () => {
    const { chosen, questions } = await choose({}, 'shop', 'tolls', '2', '');
    expect(chosen).toEqual({ folder: 'shop', template: 'tools', baseModel: 'pocket-tools' });
    expect(questions[2]).toMatch(/^There is no template tolls; did you mean tools\?\n/);
    expect((await choose({}, '', 'ruler', './models/mine')).chosen).toMatchObject({
      template: 'ruler',
      baseModel: './models/mine',
    });
  });

  test('what was passed is not asked', async () => {
    const { chosen, questions } = await choose({ folder: 'a', template: 'tools', baseModel: 'mine' });
    expect({ chosen, questions }).toEqual({
      chosen: { folder: 'a', template: 'tools', baseModel: 'mine' },
      questions: [],
    });
  });
});

test('a project’s tools are of the versions that Temper is tested with', () => {
  const { manifest: planned } = planManifest(null, { name: 'a', temper: '^1.0.0', template: TEMPLATES.tools });
  const { dependencies, devDependencies } = planned as Record<string, Record<string, string>>;
  const wanted = { ...dependencies, ...devDependencies };
  const own: Readonly<Record<string, string>> = { ...manifest.dependencies, ...manifest.devDependencies };
  const major = (version = '') => /\d+/.exec(version)?.[0];
  for (const [name, version] of Object.entries(wanted))
    if (name !== 'temper-rl') expect(major(version), name).toBe(major(own[name]));
});
