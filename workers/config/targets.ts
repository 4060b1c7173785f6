/** Targets of a project, by the names under which runs know them: trackers of metrics, and where traces go. */
import { TRACKER_KINDS, TrackerSettings } from '../../core/contract/outbound.ts';
import { TRACE_KINDS, TraceSettings } from '../../core/contract/trace.ts';
import { badConfig } from '../../core/contract/failures.ts';
import type { TemperConfig } from './config.ts';

type TargetConfig = Pick<TemperConfig, 'track' | 'trace'>;
export type TargetSettings = TrackerSettings | TraceSettings;

/** Those that every run tells. */
export function namesOfTargets({ track, trace }: TargetConfig): string[] {
  return [...track, ...trace].map(({ name }) => name);
}

/** Settings of a name: those of the configuration, or the defaults of a kind of target. */
export function settingsOfTarget(config: TargetConfig, name: string): TargetSettings {
  return findTracker(config, name) ?? findTrace(config, name) ?? refuse(config, name);
}

/** Refuses a name that no tracker has. */
export function requireTracker(config: TargetConfig, name: string): void {
  if (findTracker(config, name) === null) refuse({ ...config, trace: [] }, name, 'tracker');
}

/** Refuses a name that no target for traces has. */
export function requireTrace(config: TargetConfig, name: string): void {
  if (findTrace(config, name) === null) refuse({ ...config, track: [] }, name, 'trace');
}

export function isTraceSettings(settings: TargetSettings): settings is TraceSettings {
  return TRACE_KINDS.some((kind) => kind === settings.kind);
}

function findTracker({ track }: TargetConfig, name: string): TrackerSettings | null {
  const kind = TRACKER_KINDS.find((known) => known === name);
  const configured = track.find((settings) => settings.name === name);
  return configured ?? (kind === undefined ? null : TrackerSettings.parse({ kind }));
}

function findTrace({ trace }: TargetConfig, name: string): TraceSettings | null {
  const kind = TRACE_KINDS.find((known) => known === name);
  const configured = trace.find((settings) => settings.name === name);
  return configured ?? (kind === undefined ? null : TraceSettings.parse({ kind }));
}

const REFUSED = {
  tracker: { noun: 'a tracker', kinds: TRACKER_KINDS, member: 'track' },
  trace: { noun: 'a target for traces', kinds: TRACE_KINDS, member: 'trace' },
  any: { noun: 'a target', kinds: [...TRACKER_KINDS, ...TRACE_KINDS], member: 'track or trace' },
} as const;

function refuse(config: TargetConfig, name: string, of: keyof typeof REFUSED = 'any'): never {
  const { noun, kinds, member } = REFUSED[of];
  const known = [...new Set([...kinds, ...namesOfTargets(config)])].join(', ');
  throw badConfig(
    `${noun} must be one of ${known}, got ${JSON.stringify(name)}; name one of these, or add it to ${member} of temporal.config.ts`,
  );
}
