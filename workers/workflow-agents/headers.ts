/** Headers by which a workflow of an attempt sends its activities to other queues. SDKs on Temporal pass them on to children. */
import type { WorkflowClientInterceptor } from '@temporalio/client';
import { defaultPayloadConverter, type Headers } from '@temporalio/common';

/** Client's settings of `@temporalio/openai-agents`; they count more than those in the workflow's code. */
const OPENAI_AGENTS = '__openai_agents_config';
/** Read by `temperPlugin()`. */
const ROUTES_HEADER = 'temper';

/** Options of activities of these types: over those that the workflow gives. */
interface Route {
  readonly activities: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
}

const HEARTBEAT_MS = 10_000;
/** Longer than any call with its retries may take. */
const SPARE_MS = 60_000;

export interface RouteOptions {
  readonly queue: string;
  readonly activityTypes: readonly string[];
  readonly limits: { readonly callTimeoutMs: number; readonly callRetryBudgetMs: number };
  readonly modelParams: Readonly<Record<string, unknown>>;
  readonly rerouted: Route | null;
  readonly headers: Readonly<Record<string, unknown>>;
}

export function routeHeaders({ queue, activityTypes, limits, modelParams, rerouted, headers }: RouteOptions): Headers {
  const options = {
    taskQueue: queue,
    startToCloseTimeout: limits.callTimeoutMs + limits.callRetryBudgetMs + SPARE_MS,
    heartbeatTimeout: HEARTBEAT_MS,
    retry: { initialInterval: 500, backoffCoefficient: 1.5, maximumInterval: 5000 },
  };
  const routes: Route[] = [{ activities: activityTypes, options }, ...(rerouted === null ? [] : [rerouted])];
  const all = {
    ...headers,
    // A local activity runs on the worker of the workflow, and on no queue.
    [OPENAI_AGENTS]: { modelParams: { ...modelParams, ...options, useLocalActivity: false } },
    [ROUTES_HEADER]: { routes },
  };
  return Object.fromEntries(
    Object.entries(all).map(([name, value]) => [name, defaultPayloadConverter.toPayload(value)]),
  );
}

export function addHeaders(own: Headers): WorkflowClientInterceptor {
  return { startWithDetails: (input, next) => next({ ...input, headers: { ...input.headers, ...own } }) };
}
