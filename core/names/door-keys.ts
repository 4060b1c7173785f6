/** Keys that open Temper's own servers to people and programs. */

export const UI_KEY_VARIABLE = 'TEMPER_UI_KEY';
export const SERVE_KEY_VARIABLE = 'TEMPER_SERVE_KEY';
export const REVIEW_KEY_VARIABLE = 'TEMPER_REVIEW_KEY';
/** Of feedback to `temper serve --record`. */
export const FEEDBACK_KEY_VARIABLE = 'TEMPER_FEEDBACK_KEY';

const DOOR_KEYS: readonly string[] = [UI_KEY_VARIABLE, SERVE_KEY_VARIABLE, REVIEW_KEY_VARIABLE, FEEDBACK_KEY_VARIABLE];

/** For whatever runs code of others: it must not act on runs, give rewards, or use a model as a person does. */
export function withoutDoorKeys(env: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !DOOR_KEYS.includes(name)));
}

/** Takes them out of an environment. Returns what it was. */
export function takeDoorKeys(env: Record<string, string | undefined>): Record<string, string | undefined> {
  const whole = { ...env };
  for (const name of DOOR_KEYS) delete env[name];
  return whole;
}
