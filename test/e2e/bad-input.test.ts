/**
 * Mistakes of a person that take processes to see: one line on stderr, exit code 2, no run begun, no process left.
 * Each flag, file and address: test/cli/bad-input.test.ts, in one process.
 */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, test } from 'vitest';
import { aliveIn, linesOf, runTemper } from '../stack.ts';
import { until } from '../until.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const AGENT = fileURLToPath(new URL('../../examples/tic-tac-toe/agent.ts', import.meta.url));
const TRAIN = ['train', AGENT, '--base-model', 'pocket', '--run', 'fresh', '--steps', '1'];
let project: string;

beforeEach(() => {
  project = temporaryFolder();
  writeFileSync(join(project, 'package.json'), '{}');
});

/** The one line, after it was checked that nothing but this line came of the command. */
async function complaint(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runTemper(project, args, process.env);
  expect(code, stdout + stderr).toBe(2);
  expect(linesOf(stderr), stderr).toHaveLength(1);
  expect(stderr).toMatch(/^temper: .+; /);
  expect(existsSync(join(project, '.temper', 'store', 'runs', 'fresh'))).toBe(false);
  await until('nothing runs', () => aliveIn(project).length === 0, 60_000);
  return stderr.trim().replaceAll(project, 'PROJECT');
}

test('a mistake that is seen before anything is started leaves nothing at all', async () => {
  expect(await complaint([...TRAIN, '--grop-size', '8'])).toContain('unknown flag --grop-size');
  expect(readdirSync(project)).toEqual(['package.json']);
});

test('examples above the limit of tokens are refused by their line, or counted before a run that leaves them out', async () => {
  const chat = (content: string) =>
    JSON.stringify({ messages: ['user', 'assistant'].map((role) => ({ role, content })) });
  writeFileSync(join(project, 'fresh.jsonl'), [chat('a'), chat('b'.repeat(40))].join('\n'));
  const sft = ['train', 'fresh.jsonl', '--base-model', 'pocket', '--max-example-tokens', '30'];
  expect(await complaint([...sft, '--overlong', 'refuse'])).toContain(
    'line 2 of the examples must have at most 30 tokens, it has 84; shorten it, or set overlong to mask',
  );
  // Refused next, so that nothing is started.
  const env = { ...process.env, CUDA_VISIBLE_DEVICES: '' };
  const { code, stdout } = await runTemper(project, [...sft, '--device', 'cuda', '--devices', '2'], env);
  expect([code, linesOf(stdout)]).toEqual([
    2,
    [
      '2 examples: 2 of 6 tokens are trained, the longest has 6',
      'note: 1 example above the limit of tokens will be left out',
      'fresh: supervised training of pocket, 1 step of 16 examples',
      expect.stringMatching(/^What the terms mean: .*docs\/glossary\.md$/),
    ],
  ]);
});

test('a port that is taken', async () => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = String((server.address() as AddressInfo).port);
  const text = await complaint(['dev', '--ui-port', port]);
  expect(text).toContain(`port ${port} (--ui-port) must be free, but another program listens on it`);
  server.close();
});
