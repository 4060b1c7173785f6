import { openTraceTarget } from '../../outbound/trace/trace-target.ts';
import type { Target } from '../../outbound/target.ts';
import { openTracker } from '../../outbound/track/open-tracker.ts';
import type { TrackerPlace } from '../../outbound/track/tracker-run.ts';
import { isTraceSettings, type TargetSettings } from '../config/targets.ts';
import { version } from '../version.ts';

/** A tracker of metrics, or where traces go. */
export function openTarget(settings: TargetSettings, place: TrackerPlace): Target {
  return isTraceSettings(settings)
    ? openTraceTarget(settings, { ...place, version: version() })
    : openTracker(settings, place);
}
