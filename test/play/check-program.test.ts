import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

import type { Agent } from '../../play/agent.ts';
import { checkProgram } from '../../play/programs/check-program.ts';
import { command, defineAgent } from '../../sdk/index.ts';

const folder = fileURLToPath(new URL('.', import.meta.url));
const agentOf = (rollout: Agent['rollout']): Agent => ({
  ...defineAgent({ name: 'quiz', scenarios: [], rollout: rollout as () => 1 }),
  folder,
});

test.each([
  [() => 1],
  [command(['sh', 'play.sh'])],
  [command([process.execPath])],
  [command(['sh'], { files: ['judge', 'play.ts'] })],
])('a rollout that can be started is accepted', (rollout) => {
  expect(() => checkProgram(agentOf(rollout))).not.toThrow();
});

test.each([
  [
    command(['no-such-program']),
    /the program of the agent quiz must be on this machine, but no-such-program is not on PATH/,
  ],
  [command(['./play.sh']), /but \.\/play\.sh is no program in .*test\/play/],
  [command(['./play.ts']), /but \.\/play\.ts is no program in .*test\/play/],
  [command(['sh'], { env: { PATH: '/nowhere' } }), /sh is not on PATH/],
  [command(['sh'], { files: ['play.ts', 'lib'] }), /files of command\(\[…\]\) must exist, got lib, which is not in/],
])('what cannot be started is refused with one line', (rollout, message) => {
  expect(() => checkProgram(agentOf(rollout))).toThrow(message);
});
