/** Settings of a run that may change while it is in progress: their fields, rules and plans. */
import { findConfigProblem } from './config-rules.ts';
import type { RunConfig, SettingChange } from '../contract/contract.ts';
import { isSupervisedOnly } from './supervised.ts';

export type Setting = SettingChange['setting'];

/** The values that a person gave. */
export type Settings = Partial<Record<Setting, number>>;

interface Rule {
  isGood(value: number): boolean;
  /** In the words of the command line's. */
  words: string;
}

const isCount = (least: number) => (value: number) => Number.isSafeInteger(value) && value >= least;

const AT_LEAST_0: Rule = {
  isGood: (value) => Number.isFinite(value) && value >= 0,
  words: 'a number of at least 0',
};

/** Rules of the contract's schemas, which are not in the workflow's bundle; a test compares the two. */
const RULES: Readonly<Record<Setting, Rule>> = {
  learningRate: AT_LEAST_0,
  temperature: { isGood: (value) => value > 0 && value <= 2, words: 'greater than 0 and at most 2' },
  steps: { isGood: isCount(1), words: 'a whole number of at least 1' },
  groupSize: { isGood: isCount(2), words: 'a whole number of at least 2 (an advantage is relative to its group)' },
  evalEvery: { isGood: isCount(0), words: 'a whole number of at least 0' },
  gpuUsdPerHour: AT_LEAST_0,
  maxCostUsd: AT_LEAST_0,
  maxHours: AT_LEAST_0,
};

/** They say how an agent is played. */
const OF_ATTEMPTS: readonly Setting[] = ['temperature', 'groupSize'];

export const SETTINGS = Object.keys(RULES) as readonly Setting[];

/** `a number of at least 0` */
export function rangeOf(setting: Setting): string {
  return RULES[setting].words;
}

export function settingOf(config: RunConfig, setting: Setting): number | null {
  return setting === 'temperature' ? config.rollout.temperature : config[setting];
}

export function applySettings(config: RunConfig, settings: Settings): RunConfig {
  const { temperature = config.rollout.temperature, ...others } = settings;
  return { ...config, ...others, rollout: { ...config.rollout, temperature } };
}

/** Changes among the given values that are not in effect yet; they apply from `place` on. */
export function planChanges(
  config: RunConfig,
  settings: Settings,
  { branch, step, reason }: Pick<SettingChange, 'branch' | 'step' | 'reason'>,
): SettingChange[] {
  const given = SETTINGS.flatMap((setting) => {
    const to = settings[setting];
    return to === undefined ? [] : [{ setting, from: settingOf(config, setting), to, branch, step, reason }];
  });
  return given.filter(({ from, to }) => from !== to);
}

export function applyChanges(config: RunConfig, changes: readonly SettingChange[]): RunConfig {
  return changes.reduce((changed, { setting, to }) => applySettings(changed, { [setting]: to }), config);
}

/** The configuration under which a step was planned: what was set holds until it is set again, across rollbacks too. */
export function configAt(
  started: RunConfig,
  changes: readonly SettingChange[],
  { branch, step }: Pick<SettingChange, 'branch' | 'step'>,
): RunConfig {
  const isBefore = (change: SettingChange) =>
    change.branch < branch || (change.branch === branch && change.step <= step);
  return applyChanges(started, changes.filter(isBefore));
}

/** `learningRate 0.00005 → 0.00001 from step 8 on, because: it diverged`. A branch other than `current`, that of the run, is named. */
export function describeChange({ setting, from, to, branch, step, reason }: SettingChange, current = branch): string {
  const where = branch === current ? '' : ` of branch ${branch}`;
  return `${setting} ${from ?? 'none'} → ${to} from step ${step}${where} on${formatReason(reason)}`;
}

export function formatReason(reason: string | null): string {
  return reason === null ? '' : `, because: ${reason}`;
}

/** Describes why these values are invalid after `stepsDone` steps of such a run; null if they are valid. */
export function findSettingsProblem(config: RunConfig, stepsDone: number, settings: Settings): string | null {
  return (
    findValuesProblem(settings) ??
    findStepsProblem(stepsDone, settings) ??
    findEffectProblem(config, settings) ??
    complain(config, settings)
  );
}

/** Describes why values are none of any run's; null if they may be. */
export function findValuesProblem(settings: Readonly<Record<string, unknown>>): string | null {
  const entries = Object.entries(settings);
  if (entries.length === 0) return `nothing to set; name at least one of ${SETTINGS.join(', ')}`;
  for (const [name, value] of entries) {
    const rule = Object.hasOwn(RULES, name) ? RULES[name as Setting] : undefined;
    if (rule === undefined)
      return `${name} cannot be changed after a run has started, only ${SETTINGS.join(', ')} can; start another run`;
    if (typeof value !== 'number' || !rule.isGood(value))
      return `${name} must be ${rule.words}, got ${JSON.stringify(value)}; pass another value`;
  }
  return null;
}

function findStepsProblem(stepsDone: number, { steps }: Settings): string | null {
  if (steps === undefined || steps > stepsDone) return null;
  return `steps must be more than the ${stepsDone} that are done, got ${steps}; pass more, or end the run with temper stop`;
}

function findEffectProblem(config: RunConfig, settings: Settings): string | null {
  const idle = isSupervisedOnly(config) ? OF_ATTEMPTS.find((name) => settings[name] !== undefined) : undefined;
  return idle === undefined
    ? null
    : `${idle} has no effect where all steps are supervised (no attempt is played); leave it out`;
}

function complain(config: RunConfig, settings: Settings): string | null {
  return findConfigProblem(applySettings(config, settings));
}
