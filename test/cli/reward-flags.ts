/** Probes of the flags of commands for rewards from outside; see flag-probes.ts. */
import { byTest, type ShownByTest } from '../by-test.ts';

const GIVEN = byTest(
  'cli/rewards.test.ts',
  'a reward is recorded with who gave it and why; the last one counts, and a negative one is no flag',
);
const LINKED = byTest('cli/rewards.test.ts', 'one for each attempt that waits, signed for it, also as JSON');
const REVIEWED = byTest('cli/review/review.test.ts', 'it takes rewards until Ctrl-C, while Temporal is away');

export const REWARD_FLAGS: Readonly<Record<string, ShownByTest>> = {
  'reward --file': byTest('cli/rewards.test.ts', 'a file of rewards is given as a whole, and again without effect'),
  'reward --metric': GIVEN,
  'reward --by': GIVEN,
  'reward --note': GIVEN,
  'reward --key': GIVEN,
  'rewards --json': byTest(
    'cli/rewards.test.ts',
    'awaited attempts are listed oldest first, with the end of what they said, and as JSON',
  ),
  'rewards --links': LINKED,
  'rewards --expires-days': LINKED,
  'review --host': REVIEWED,
  'review --port': REVIEWED,
  'review --allow-host': REVIEWED,
  'review --json': REVIEWED,
};
