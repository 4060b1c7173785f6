/**
 * The one line in a production worker whose SDK has no header for the queue of its model calls: `plugins: [temperPlugin()]`.
 * Workflows without Temper's header run as they do without it. Nothing is imported here: worker and package may have
 * different versions of Temporal's SDK.
 */
import { modulePath } from '../process/module-path.ts';

/** A plugin of `Worker.create` and `bundleWorkflowCode`. */
export interface TemperPlugin {
  readonly name: string;
  configureWorker<T extends object>(options: T): T;
  configureReplayWorker<T extends object>(options: T): T;
  configureBundler<T extends object>(options: T): T;
}

interface BundledOptions {
  readonly workflowsPath?: string;
  readonly interceptors?: { readonly workflowModules?: readonly string[] };
}

interface BundlerOptions {
  readonly workflowInterceptorModules?: readonly string[];
}

export function temperPlugin(): TemperPlugin {
  return {
    name: 'temper',
    configureWorker: withInterceptor,
    configureReplayWorker: withInterceptor,
    configureBundler: <T extends object>(options: T): T => {
      const { workflowInterceptorModules: modules = [] } = options as BundlerOptions;
      return { ...options, workflowInterceptorModules: [...modules, interceptorModule()] };
    },
  };
}

/** A bundle that is made beforehand has its interceptors already. */
function withInterceptor<T extends object>(options: T): T {
  const { workflowsPath, interceptors = {} } = options as BundledOptions;
  if (workflowsPath === undefined) return options;
  const { workflowModules = [] } = interceptors;
  return { ...options, interceptors: { ...interceptors, workflowModules: [...workflowModules, interceptorModule()] } };
}

function interceptorModule(): string {
  return modulePath('workflow-agents/route-activities');
}
