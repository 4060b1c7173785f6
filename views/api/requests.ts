/** Requests to `temper ui`, actions and chats, and the events that it sends. */
import type { IndexProgress } from './attempt-views.ts';
import type { RunRow, RunStateName, ServerInfo } from './run-views.ts';

/** `POST actions`: with `isConfirmed: false` nothing happens, and `says` tells what would. */
export interface ActionRequest {
  readonly action: 'pause' | 'resume' | 'stop' | 'set' | 'rollback' | 'fork' | 'evaluate' | 'replay';
  readonly run: string;
  readonly isConfirmed: boolean;
  /** Names this confirmation: sent again, it does nothing twice. */
  readonly requestId?: string;
  /** Rollback, fork, evaluate. */
  readonly step?: number;
  /** Set. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly reason?: string;
  /** Name of a fork. */
  readonly name?: string;
  /** Replay. */
  readonly attempt?: string;
  /** The turn from which on answers are new, and who gives them: `demo@12`, or a hosted model. */
  readonly fromTurn?: number;
  readonly model?: string;
  /** Replay, evaluate: the agent's file, if it cannot be found in the project. */
  readonly agentFile?: string;
}

export interface ActionResult {
  readonly says: string;
  readonly isDone: boolean;
  /** Command of the terminal that does the same; empty: there is none. */
  readonly command: string;
  /** Id of something that was made: a fork's run, a replay. */
  readonly made: string | null;
}

/** `POST chat`: the answer is streamed as server-sent events of `ChatEvent`. */
export interface ChatRequest {
  /** `demo@12`, `base:demo` for its base model, or a hosted model's name. */
  readonly model: string;
  readonly messages: readonly { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }[];
  readonly temperature?: number;
  readonly maxTokens?: number;
}

export type ChatEvent =
  | { readonly kind: 'waiting'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'end'; readonly finishReason: string | null; readonly tokens: number | null }
  | { readonly kind: 'error'; readonly text: string };

/** `events`: server-sent events. A reader fetches again what it shows. */
export type LiveEvent =
  | { readonly kind: 'runs'; readonly runs: readonly RunRow[] }
  | { readonly kind: 'run'; readonly run: string; readonly step: number; readonly state: RunStateName }
  /** Temporal came or went. */
  | { readonly kind: 'info'; readonly info: ServerInfo }
  | { readonly kind: 'index'; readonly run: string; readonly progress: IndexProgress };

/** Answer of every refused request. */
export interface ApiError {
  readonly error: { readonly message: string; readonly code: string | null };
}
