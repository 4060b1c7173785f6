import { TemperError } from '../core/failures.ts';

/** Who comes second must have come with the same inputs. */
export function checkInputs(what: string, recorded: string, asked: string): void {
  if (recorded === asked) return;
  const rule = `${what} is already in the store, made from inputs ${recorded}, but was requested from inputs ${asked}`;
  throw new TemperError('StepConflict', `${rule}; start the run under another name`);
}
