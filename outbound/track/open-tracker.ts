/** The tracker of some settings. */
import type { TrackerKind, TrackerSettings } from '../../core/contract/outbound.ts';
import type { Target } from '../target.ts';
import { createCsvTracker } from './csv.ts';
import { createMlflowTracker } from './mlflow.ts';
import { createTrackioTracker } from './trackio.ts';
import type { TrackerPlace } from './tracker-run.ts';
import { createWandbTracker } from './wandb.ts';

const CREATE = {
  csv: createCsvTracker,
  mlflow: createMlflowTracker,
  trackio: createTrackioTracker,
  wandb: createWandbTracker,
} satisfies {
  [Kind in TrackerKind]: (settings: Extract<TrackerSettings, { kind: Kind }>, place: TrackerPlace) => Target;
};

export function openTracker(settings: TrackerSettings, place: TrackerPlace): Target {
  const create: (settings: never, place: TrackerPlace) => Target = CREATE[settings.kind];
  return create(settings as never, place);
}
