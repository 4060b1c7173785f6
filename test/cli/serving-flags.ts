/** Tests that show the effect of each flag of serving, recording and promotion. */
import { byTest, type ShownByTest } from '../by-test.ts';

const SERVED = byTest('cli/serve.test.ts', 'it answers until Ctrl-C, and tells itself as JSON');
const PACKED = byTest(
  'cli/serve.test.ts',
  'a checkpoint of a run with --load-in-4bit is served in 4 bits, and so is another one on request',
);
const OPEN = byTest(
  'cli/serve.test.ts',
  'an address that is open to other machines needs a key of the environment, and names of its own',
);
const RECORDING = byTest(
  'cli/plan-recording.test.ts',
  'nothing is recorded without --record, and what is recorded follows from the flags',
);
const PROMOTED = byTest(
  'cli/promote.test.ts',
  'checkpoints are promoted and taken back, each with who, when, why and how good it is',
);
const ALIAS = byTest(
  'cli/promote.test.ts',
  'a checkpoint of another run may become production, and the alias names it in every command',
);
const COUNTED = byTest('cli/promote.test.ts', 'temper production counts what was recorded, and shows a conversation');

/** Rows by command and flag. */
export const SERVING_FLAGS: Readonly<Record<string, ShownByTest>> = {
  'serve --host': SERVED,
  'serve --port': SERVED,
  'serve --model-name': SERVED,
  'serve --device': SERVED,
  'serve --dtype': SERVED,
  'serve --json': SERVED,
  'serve --load-in-4bit': PACKED,
  'serve --allow-host': OPEN,
  'serve --record': RECORDING,
  'serve --record-share': RECORDING,
  'serve --record-days': RECORDING,
  'serve --redact': RECORDING,
  'promote --by': PROMOTED,
  'promote --reason': PROMOTED,
  'promote --back': PROMOTED,
  'promote --list': PROMOTED,
  'promote --json': PROMOTED,
  'promote --to': ALIAS,
  'production --json': COUNTED,
};
