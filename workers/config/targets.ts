/** Targets of a project, by the names under which runs know them. */
import { TRACKER_KINDS, TrackerSettings, type TrackerKind } from '../../core/contract-outbound.ts';
import { TemperError } from '../../core/failures.ts';
import type { TemperConfig } from './config.ts';

type TargetConfig = Pick<TemperConfig, 'track'>;

/** Those that every run tells. */
export function namesOfTargets({ track }: TargetConfig): string[] {
  return track.map(({ name }) => name);
}

/** Settings of a name: those of the configuration, or the defaults of a kind of tracker. */
export function settingsOfTarget(config: TargetConfig, name: string): TrackerSettings {
  const configured = config.track.find((settings) => settings.name === name);
  if (configured !== undefined) return configured;
  if (isTrackerKind(name)) return TrackerSettings.parse({ kind: name });
  const known = [...new Set([...TRACKER_KINDS, ...namesOfTargets(config)])].join(', ');
  throw new TemperError(
    'BadConfig',
    `a tracker must be one of ${known}, got ${JSON.stringify(name)}; name one of these, or add it to track of temporal.config.ts`,
  );
}

function isTrackerKind(name: string): name is TrackerKind {
  return TRACKER_KINDS.some((kind) => kind === name);
}
