/** Defines a resource of an agent: `resources: { database: resource({ scope: 'attempt', setup, teardown }) }`. */
import { badConfig, type TemperError, showValue } from '../../core/contract/failures.ts';
import type { Scenario } from '../../play/agent.ts';
import {
  RESOURCE,
  type Resource,
  type SetupContext,
  type TeardownContext,
  type WorkerSetupContext,
} from '../../play/resources/resource.ts';
import { checkCount, checkOptions } from '../options/check-options.ts';

interface Common<T> {
  /**
   * Ends what setup created, or had begun to create when it failed or its process was killed. It may be called more than
   * once, and in another process: what is gone already is no error.
   */
  teardown(this: void, context: TeardownContext, value?: NoInfer<T>): unknown;
  /** How long setup may take; five minutes. */
  setupTimeoutMs?: number;
  /** How long teardown may take; one minute. */
  teardownTimeoutMs?: number;
}

interface OfWorker<T, R extends object> extends Common<T> {
  scope: 'worker';
  setup(this: void, context: WorkerSetupContext<R>): T | Promise<T>;
}

interface OfAttempts<T, S extends Scenario, R extends object> extends Common<T> {
  /** `group`: one for all attempts at a scenario. */
  scope: 'group' | 'attempt';
  setup(this: void, context: SetupContext<S, R>): T | Promise<T>;
}

export type ResourceDefinition<T, S extends Scenario = Scenario, R extends object = object> =
  | OfWorker<T, R>
  | OfAttempts<T, S, R>;

const SCOPES = ['worker', 'group', 'attempt'];
const SETUP_TIMEOUT_MS = 300_000;
const TEARDOWN_TIMEOUT_MS = 60_000;

export function resource<T, S extends Scenario = Scenario, R extends object = object>(
  definition: ResourceDefinition<T, S, R>,
): Resource<T> {
  const {
    scope,
    setup,
    teardown,
    setupTimeoutMs = SETUP_TIMEOUT_MS,
    teardownTimeoutMs = TEARDOWN_TIMEOUT_MS,
  } = checkOptions('resource', definition);
  if (!SCOPES.includes(scope)) throw bad('scope', "'worker', 'group' or 'attempt'", scope, "pass 'attempt'");
  for (const [name, each] of Object.entries({ setup, teardown }))
    if (typeof each !== 'function') throw bad(name, 'a function', each, 'pass one');
  checkCount('setupTimeoutMs of resource', setupTimeoutMs, { least: 1, example: SETUP_TIMEOUT_MS });
  checkCount('teardownTimeoutMs of resource', teardownTimeoutMs, { least: 1, example: TEARDOWN_TIMEOUT_MS });
  const methods = { setup, teardown } as Pick<Resource<T>, 'setup' | 'teardown'>;
  return Object.freeze({ scope, ...methods, setupTimeoutMs, teardownTimeoutMs, [RESOURCE]: true as const });
}

function bad(name: string, rule: string, value: unknown, remedy: string): TemperError {
  return badConfig(`${name} of resource must be ${rule}, got ${showValue(value)}; ${remedy}`);
}
