import { RECORD_SCHEMA } from './wire-constants.ts';

/** The one list of failure types, each naming the boundary that was crossed; `npm run contract` writes it for Python. */
export const FAILURES = {
  /** The user's agent threw or returned an invalid result: data, kept with the attempt. */
  AgentFailed: { retryable: false },
  /** A judge answered nothing usable. */
  JudgeFailed: { retryable: true },
  /** The engine could not be reached or could not answer within the call's budget: an outage, never data. */
  EngineFailed: { retryable: true },
  /** The process outside of this one that plays an attempt was ended or is missing: an outage, never data. */
  ProgramFailed: { retryable: true },
  /** A resource that attempts need could not be set up: an outage, never data. */
  ResourceFailed: { retryable: true },
  /** The trainer could not do a step for a reason that may pass. */
  TrainerFailed: { retryable: true },
  /** Memory did not suffice, however often it was tried and what could be freed was freed. */
  OutOfMemory: { retryable: false },
  /** Bytes of the store are missing or do not have their hash. */
  StoreCorrupt: { retryable: false },
  /** The store refused a write or a read for a reason that may pass (disk full, read-only). */
  StoreUnavailable: { retryable: true },
  /** Scenarios could not be read from a server for a reason that may pass. */
  SourceUnavailable: { retryable: true },
  /** The target of a deployment did not answer, or refused for a reason that may pass. */
  TargetUnavailable: { retryable: true },
  /** The target refused a deployment, or what it serves is not the checkpoint. */
  DeploymentFailed: { retryable: false },
  /** The user asked for something that cannot be. */
  BadConfig: { retryable: false },
  /** The sampled policy differs from the trained one. */
  PolicyMismatch: { retryable: false },
  /** A write-once object exists, made from other inputs. */
  StepConflict: { retryable: false },
  /** Loss or gradient was NaN or infinite. */
  LossNotFinite: { retryable: false },
  /** The activity missed its heartbeat: another worker may have it by now. */
  StaleAttempt: { retryable: true },
  /** A later version of Temper wrote or sent it, and this one does not know all of it: a process of that version does. */
  LaterVersion: { retryable: true },
} as const;

export type FailureType = keyof typeof FAILURES;

export const NON_RETRYABLE: readonly FailureType[] = (Object.keys(FAILURES) as FailureType[]).filter(
  (type) => !FAILURES[type].retryable,
);

/** An error with one of the types above; workers turn it into Temporal's ApplicationFailure of the same type. */
export class TemperError extends Error {
  override readonly name = 'TemperError';
  readonly type: FailureType;
  /** Pause that a refusal asked for; null if it named none. */
  readonly retryAfterMs: number | null;

  /** Compares names: an agent file may load a second copy of this module, whose errors are equally valid. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && (value as Partial<TemperError>).name === 'TemperError';
  }

  constructor(type: FailureType, message: string, options?: { cause?: unknown; retryAfterMs?: number }) {
    super(message, options);
    this.type = type;
    this.retryAfterMs = options?.retryAfterMs ?? null;
  }

  get retryable(): boolean {
    return FAILURES[this.type].retryable;
  }
}

/** The user asked for something that cannot be: `message` says the rule, what was given, and a remedy. */
export function badConfig(message: string, options?: { cause?: unknown }): TemperError {
  return new TemperError('BadConfig', message, options);
}

/** Failure of the requested work that is neither a bug nor wrong input, such as a worker that does not answer. It crosses no wire. */
export class WorkFailed extends Error {
  override readonly name = 'WorkFailed';
}

// Files of a later version of Temper are valid and left alone: only this version cannot read them.

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

/** A value as an error message shows it. */
export function showValue(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value)).slice(0, 100);
}
