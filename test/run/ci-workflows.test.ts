/** The workflows in `.github/`: they run what README says, and actionlint finds no mistake in them. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { isNightly } from './tier.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ACTIONLINT = 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12';

const read = (path: string) => readFileSync(`${ROOT}/${path}`, 'utf8');

test('CI runs the test line of README and nothing else', () => {
  const lines = read('.ci/run').split('\n');
  expect(lines.filter((line) => line !== '' && !/^#|^set |^cd /.test(line)).join(' && ')).toBe('npm ci && npm test');
  expect(read('.github/workflows/ci.yml')).toContain('- run: .ci/run\n');
});

test('CI runs the oldest Node and the oldest and newest Python that the product takes', () => {
  const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
  const oldest = /^>=(\d+)\./.exec(engines.node)![1];
  const [, node, python] = /node: (\[.*\])\n +python: (\[.*\])\n/.exec(read('.github/workflows/ci.yml'))!;
  expect(node).toMatch(new RegExp(`^\\[${oldest}, `));
  expect(python).toBe("['3.11', '3.13']");
  expect(read('README.md')).toContain('Python 3.11–3.13');
});

// Not on each landing: its modules are downloaded where they are not yet.
test.runIf(isNightly())('actionlint finds no mistake', (context) => {
  if (spawnSync('go', ['version']).status !== 0) context.skip('Go is not installed, so actionlint cannot be run');
  const { status, stdout, stderr } = spawnSync('go', ['run', ACTIONLINT], { cwd: ROOT, encoding: 'utf8' });
  expect(stdout).toBe('');
  expect(status, stderr).toBe(0);
});
