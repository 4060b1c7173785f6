/** `KEY=VALUE` of `temper set`, checked as far as no run is known. */
import { closestName } from '../core/names/closest-name.ts';
import { badConfig } from '../core/contract/failures.ts';
import { findValuesProblem, rangeOf, SETTINGS, type Setting, type Settings } from '../core/rules/settings.ts';
import { memberName } from './operation.ts';

/** A key is a setting, or the name of its flag. */
export function parseSettings(texts: readonly string[]): Settings {
  const settings: Settings = {};
  for (const text of texts) {
    const [key = '', ...rest] = text.split('=');
    if (rest.length === 0)
      throw badConfig(`a setting must be KEY=VALUE, got ${JSON.stringify(text)}; pass for example steps=300`);
    const setting = findSetting(key.trim());
    if (settings[setting] !== undefined) throw badConfig(`${setting} is given twice; pass it once`);
    const value = rest.join('=').trim();
    const number = value === '' ? NaN : Number(value);
    if (!Number.isFinite(number))
      throw badConfig(`${setting} must be ${rangeOf(setting)}, got ${JSON.stringify(value)}; pass a number`);
    settings[setting] = number;
  }
  const problem = findValuesProblem(settings);
  if (problem !== null) throw badConfig(problem);
  return settings;
}

function findSetting(key: string): Setting {
  const setting = SETTINGS.find((name) => name === memberName(key));
  if (setting !== undefined) return setting;
  const guess = closestName(key, SETTINGS);
  throw badConfig(
    guess === null
      ? `${key} cannot be changed after a run has started, only ${SETTINGS.join(', ')} can; start another run`
      : `unknown setting ${JSON.stringify(key)}, did you mean ${guess}?`,
  );
}
