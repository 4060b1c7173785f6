/** The tracker of some settings. */
import type { TrackerSettings } from '../../core/contract-outbound.ts';
import type { Target } from '../target.ts';
import { createCsvTracker } from './csv.ts';
import { createMlflowTracker } from './mlflow.ts';
import { createTrackioTracker } from './trackio.ts';
import type { TrackerPlace } from './tracker-place.ts';
import { createWandbTracker } from './wandb.ts';

export function openTracker(settings: TrackerSettings, place: TrackerPlace): Target {
  switch (settings.kind) {
    case 'csv':
      return createCsvTracker(settings, place);
    case 'mlflow':
      return createMlflowTracker(settings, place);
    case 'trackio':
      return createTrackioTracker(settings, place);
    case 'wandb':
      return createWandbTracker(settings, place);
  }
}
