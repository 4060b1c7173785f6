/** Files of a later version of Temper are valid and left alone: only this version cannot read them. */
import { TemperError } from './failures.ts';
import { RECORD_SCHEMA } from './wire-constants.ts';

export function laterVersion(name: string, unknown: string): TemperError {
  return new TemperError(
    'LaterVersion',
    `${name} was made by a later version of Temper (${unknown}); upgrade Temper on this host, and leave the file as it is`,
  );
}

/** Throws LaterVersion for a record whose `schema` is above this version's, whatever else it says. */
export function requireKnownSchema(value: unknown, name: string): void {
  const { schema } = (value ?? {}) as { schema?: unknown };
  if (typeof schema === 'number' && Number.isInteger(schema) && schema > RECORD_SCHEMA)
    throw laterVersion(name, `schema ${schema}; this version knows ${RECORD_SCHEMA}`);
}

/** Whether an object's own bytes are the reason, however often they are read: damage, or a later version. */
export function isUnreadable(error: unknown): error is TemperError {
  return error instanceof TemperError && (error.type === 'StoreCorrupt' || error.type === 'LaterVersion');
}
