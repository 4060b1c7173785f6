/** Resources of an agent: a container, a database, a browser, set up before the attempts that need it and ended after. */

/** How long a resource lives: as long as a worker, the attempts of a group, or one attempt. */
export type ResourceScope = 'worker' | 'group' | 'attempt';

export interface WorkerSetupContext<R extends object = object> {
  /**
   * A new name for each setup, of lower case letters and digits. It is in the store before setup begins: create what you
   * create under this name, so that teardown finds it, however setup ended.
   */
  readonly id: string;
  /** Values of the agent's resources that were set up before this one. */
  readonly resources: R;
  /** Aborted when setup takes too long, or is not needed any more. */
  readonly signal: AbortSignal;
  /** Writes JSON into the lease, once: what teardown needs beside the id, such as a session's address. */
  readonly record: (data: unknown) => Promise<void>;
}

export interface SetupContext<
  S extends { readonly id: string } = { readonly id: string },
  R extends object = object,
> extends WorkerSetupContext<R> {
  readonly scenario: S;
}

export interface TeardownContext {
  readonly id: string;
  /** JSON that setup recorded; null if it recorded nothing, or did not get so far. */
  readonly data: unknown;
  /** Aborted when teardown takes too long. */
  readonly signal: AbortSignal;
}

export interface Resource<T = unknown> {
  readonly scope: ResourceScope;
  readonly setupTimeoutMs: number;
  readonly teardownTimeoutMs: number;
  setup(this: void, context: SetupContext): T | Promise<T>;
  /** Without a value in another process, or if setup did not end. */
  teardown(this: void, context: TeardownContext, value?: T): unknown;
  readonly [RESOURCE]: true;
}

/** Resources by the names that the rollout knows. */
export type Resources = Readonly<Record<string, Resource>>;

/** A rollout that asks for a resource of an agent without any does not compile. */
export type NoResources = Readonly<Partial<Record<typeof RESOURCE, never>>>;

/** Values that setups returned, by name. */
export type ResourceValues<R> = { readonly [Name in keyof R]: R[Name] extends Resource<infer T> ? T : never };

/** Registered globally, as the mark of an agent is. */
export const RESOURCE = Symbol.for('temper.resource');

export function isResource(value: unknown): value is Resource {
  return typeof value === 'object' && value !== null && (value as Partial<Resource>)[RESOURCE] === true;
}
