/** Each line that README tells people to type: the two set-up lines are what CI runs, the others are run here. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Checkout } from './checkout.ts';
import { linesOf } from './command.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(fileURLToPath(new URL(path, ROOT)), 'utf8');
const SETUP = ['npm ci && npm start', 'npm ci && npm test'];
const RUNNABLE = /^npx temper /;

/** Lines of the shell blocks, without comments, continued lines joined. */
function commandsIn(markdown: string): string[] {
  const blocks = [...markdown.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block);
  const lines = blocks.flatMap((block) => linesOf(block.replaceAll(/\\\n\s*/g, ' ')));
  return lines.map((line) => line.replace(/(?:^|\s+)#.*$/, '').trim()).filter((line) => line !== '');
}

const commands = commandsIn(read('README.md'));

test('README has exactly two set-up lines, and nothing that is not run here', () => {
  expect(commands.filter((command) => !RUNNABLE.test(command))).toEqual(SETUP);
});

test('CI runs the test line of README and nothing else', () => {
  const lines = linesOf(read('.ci/run')).filter((line) => !/^#|^set |^cd /.test(line));
  expect(lines.join(' && ')).toBe('npm ci && npm test');
});

test('what `npm start` and `npm test` run exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  expect(scripts['start']).toMatch(/^node cli\/temper\.js train examples\/tic-tac-toe\/agent\.ts --run demo /);
  expect(scripts['test']).toBeDefined();
});

describe.runIf(commands.some((command) => RUNNABLE.test(command)))(
  'the commands, on a completed run named demo',
  () => {
    const checkout = new Checkout();

    beforeAll(async () => {
      const size = ['--steps', '2', '--groups-per-step', '2', '--group-size', '4', '--eval-scenarios', '8'];
      const train = ['train', 'examples/tic-tac-toe/agent.ts', '--run', 'demo', '--base-model', 'pocket', ...size];
      const { code, stdout, stderr } = await checkout.run('node', 'cli/temper.js', ...train);
      expect(code, stdout + stderr).toBe(0);
    });

    afterAll(() => checkout.close());

    test.each(commands.filter((command) => RUNNABLE.test(command)))('%s', async (command) => {
      const { code, stdout, stderr } = await checkout.run('sh', '-c', command);
      expect(code, stdout + stderr).toBe(0);
      expect(stdout.trim()).not.toBe('');
    });
  },
);
