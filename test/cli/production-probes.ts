/** Probes of the flags that train recorded conversations. */
import { byTest, type ShownByTest } from '../by-test.ts';

const FILE = 'cli/production-input.test.ts';
const LEARNED = byTest(FILE, 'trains what has feedback, from the checkpoint that answered, with its settings');
const AGED = byTest(FILE, 'leaves out answers of a policy that is too old for it, and starts where it is told');
const FIRED = byTest(FILE, 'starts from the checkpoint that serves; its firings choose');

export const PRODUCTION_FLAGS: Readonly<Record<string, ShownByTest>> = {
  'train --from-production': LEARNED,
  'train --epochs': LEARNED,
  'train --from': AGED,
  'train --max-policy-age': AGED,
  'train --at-least': byTest(FILE, 'is refused with the numbers if there are too few, and nothing is closed'),
  'schedule create --from-production': FIRED,
  'schedule create --at-least': FIRED,
  'schedule create --epochs': FIRED,
  'schedule create --max-policy-age': FIRED,
};
