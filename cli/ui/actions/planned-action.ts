/** Actions of `temper ui`: each is planned before it is done, so that a person reads what will happen. */
import type { ActionRequest } from '../../../views/api/requests.ts';
import type { CommandEnvironment } from '../../command-line/command.ts';
import type { Store } from '../../../store/store.ts';

export interface ActionPlace extends Pick<CommandEnvironment, 'project' | 'env' | 'cwd' | 'signal'> {
  /** That of the UI, which may be another than the project's. */
  readonly store: Store;
  /** Aborted once nobody waits for the action's answer. */
  readonly gone: AbortSignal;
}

interface PlannedAction {
  /** Sentences that say what will happen, with its numbers. */
  readonly says: string;
  /** Command of the terminal that does the same. */
  readonly command: string;
  perform(): Promise<Performed>;
}

export interface Performed {
  /** Sentence that says what has happened, as the command does. */
  readonly says: string;
  /** Id of what was made; absent: nothing. */
  readonly made?: string;
}

/** Throws what the command would, for a request that cannot be done. */
export type PlanAction = (request: ActionRequest, place: ActionPlace) => Promise<PlannedAction>;

export type ActionTable = Readonly<Record<ActionRequest['action'], PlanAction>>;
