/** The example in Python, and the shell script of the page, played by a fake engine: neither needs a package. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import agent from '../../examples/python-agent/agent.ts';
import { locateScenarios } from '../../play/scenarios.ts';
import { command } from '../../sdk/index.ts';
import { blocksOf } from '../docs/markdown.ts';
import { startFakeEngine } from '../fake-engine.ts';
import { playOne, type PlayOptions, type TestRollout } from '../play/play.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const FILE = fileURLToPath(new URL('../../examples/python-agent/agent.ts', import.meta.url));
const ROLLOUT = { attemptTimeoutMs: 25_000, callTimeoutMs: 10_000 };

async function play(rollout: TestRollout, folder: string, answer: string, options: PlayOptions = {}) {
  const engine = await startFakeEngine({ answer: () => answer });
  onTestFinished(() => engine.close());
  return playOne(engine, rollout, { rollout: ROLLOUT, folder, ...options });
}

test.each([
  ['56', 1],
  ['57', 0],
])('7*8=%s is worth %d', async (answer, reward) => {
  const { folder } = locateScenarios(agent, FILE);
  const scenario = { id: '7x8', left: 7, right: 8 };
  const attempt = await play((context) => agent.rollout(context as never) as Promise<number>, folder!, answer, {
    scenario,
  });
  expect(attempt.failure).toBeNull();
  expect(attempt).toMatchObject({ reward, metrics: { correct: reward === 1 }, logs: [`7*8=${answer}`] });
  expect(attempt.calls[0]?.request).toMatchObject({ messages: [{ role: 'user', content: '7*8=' }], max_tokens: 4 });
});

test.skipIf(spawnSync('curl', ['--version']).status !== 0)('the shell script of the page plays', async () => {
  const [script] = blocksOf('docs/programs.md').filter(({ info }) => info === 'sh');
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'agent.sh'), script!.code);
  const rollout = command(['sh', 'agent.sh']);
  expect(await play(rollout, folder, '56')).toMatchObject({ failure: null, reward: 1 });
  expect(await play(rollout, folder, '57')).toMatchObject({ failure: null, reward: 0 });
});

test('the Python of the page is Python', () => {
  const blocks = blocksOf('docs/programs.md').filter(({ info }) => info === 'python');
  expect(blocks).toHaveLength(1);
  const parsed = spawnSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
    input: blocks[0]!.code,
  });
  expect(String(parsed.stderr)).toBe('');
});
