/** Tests that show the effect of each flag of temper doctor. */
import { byTest, shownBy, type Probe } from '../by-test.ts';

const EXAMINED = byTest(
  'cli/doctor-model.test.ts',
  'engine, device, type and length of conversations are those of the flags; JSON has it all',
);

const EXAMINED_DEVICES = byTest(
  'cli/doctor-model.test.ts',
  'several devices are planned by flag; a base model has no parts on a single one',
);

const PLANNED = byTest(
  'cli/doctor-model.test.ts',
  'what would be trained is what flags say, then what the project gives to every run',
);

export const DOCTOR_FLAGS: Readonly<Record<string, Probe>> = {
  'doctor --agent': byTest('workers/worker/worker.test.ts', 'polls the workflows and its agent'),
  'doctor --json': ['doctor', 'doctor --json'],
  'doctor --leases': byTest(
    'cli/doctor-leases.test.ts',
    'leaked leases are listed, and ended by the teardown of their agent',
  ),
  'doctor --model': byTest(
    'cli/doctor-model.test.ts',
    'a model that does not fit is told with its parts and what to change, and ends with 1',
  ),
  ...shownBy(
    PLANNED,
    ['doctor'],
    [
      'full-fine-tuning',
      'lora-rank',
      'lora-target-modules',
      'lora-layers',
      'lora-dora',
      'lora-dropout',
      'optimizer',
      'entropy-coefficient',
      'micro-batch-tokens',
    ],
  ),
  ...shownBy(EXAMINED_DEVICES, ['doctor'], ['devices', 'shard-base-model']),
  ...shownBy(EXAMINED, ['doctor'], ['context', 'chat-template', 'engine', 'device', 'dtype']),
  'doctor --load-in-4bit': byTest(
    'cli/doctor-model.test.ts',
    'a base model in 4 bits is planned so; what it cannot go with is refused',
  ),
};
