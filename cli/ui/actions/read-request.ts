/** Members of requests of actions, and the run that they are about. */
import type { RunConfig, RunState } from '../../../core/contract.ts';
import { isEnded, readRun } from '../../../store/records/run-reader.ts';
import type { Store } from '../../../store/store.ts';
import type { ActionRequest } from '../../../views/api/requests.ts';
import { NotFound } from '../../../views/context/context.ts';
import { UsageError } from '../../command-line/errors.ts';

export interface ActedRun {
  readonly run: string;
  readonly config: RunConfig;
  readonly state: RunState | null;
}

export async function requireActed(store: Store, { run }: ActionRequest): Promise<ActedRun> {
  const found = await readRun(store, run).catch(() => null);
  if (found === null) throw new NotFound(`no run ${JSON.stringify(run.slice(0, 80))} in this store`);
  return { run, config: found.file.config, state: found.state };
}

/** The run, if it has not ended. */
export async function requireLive(store: Store, request: ActionRequest): Promise<ActedRun> {
  const acted = await requireActed(store, request);
  if (acted.state === null || !isEnded(acted.state)) return acted;
  const { run, state } = acted;
  throw new UsageError(
    `${run} has ended (${state.state}) after step ${state.step}; roll it back to continue it, or fork a checkpoint`,
  );
}

export function requireStep({ action, step }: ActionRequest): number {
  if (step !== undefined) return step;
  throw new UsageError(`step must be the number of a step for ${action}, got none; send one`);
}

/** `KEY=VALUE`, as commands take settings. */
export function settingTexts({ settings = {} }: ActionRequest): string[] {
  return Object.entries(settings).map(([name, value]) => `${name}=${value.trim()}`);
}

export function reasonOf({ reason }: ActionRequest): string | null {
  return reason?.trim() || null;
}
