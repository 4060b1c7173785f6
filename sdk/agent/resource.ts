/** Defines a resource of an agent: `resources: { database: resource({ scope: 'attempt', setup, teardown }) }`. */
import type { Scenario } from '../../play/agent.ts';
import {
  RESOURCE,
  type Resource,
  type SetupContext,
  type TeardownContext,
  type WorkerSetupContext,
} from '../../play/resources/resource.ts';
import { callable, oneOf, takes, whole } from '../options/options.ts';

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

const SETUP_TIMEOUT_MS = 300_000;
const TEARDOWN_TIMEOUT_MS = 60_000;

const checkOptions = takes<ResourceDefinition<unknown>>('resource', {
  scope: oneOf(['worker', 'group', 'attempt'], "pass 'attempt'"),
  setup: callable('pass one'),
  teardown: callable('pass one'),
  setupTimeoutMs: whole(1, `pass ${SETUP_TIMEOUT_MS}`).optional(),
  teardownTimeoutMs: whole(1, `pass ${TEARDOWN_TIMEOUT_MS}`).optional(),
});

export function resource<T, S extends Scenario = Scenario, R extends object = object>(
  definition: ResourceDefinition<T, S, R>,
): Resource<T> {
  const {
    scope,
    setup,
    teardown,
    setupTimeoutMs = SETUP_TIMEOUT_MS,
    teardownTimeoutMs = TEARDOWN_TIMEOUT_MS,
  } = checkOptions(definition);
  const methods = { setup, teardown } as Pick<Resource<T>, 'setup' | 'teardown'>;
  return Object.freeze({ scope, ...methods, setupTimeoutMs, teardownTimeoutMs, [RESOURCE]: true as const });
}
