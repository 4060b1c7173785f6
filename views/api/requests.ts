/** Requests to `temper ui`, actions and chats, and the events that it sends. */
import type { IndexProgress } from './attempt-views.ts';
import type { RunRow, RunStateName } from './run-views.ts';

/** `info`: once, at start. */
export interface ServerInfo {
  readonly version: string;
  readonly store: string;
  /** No actions, no chat: `--read-only`, or a static export. */
  readonly isReadOnly: boolean;
  readonly isExport: boolean;
  /** Whether a Temporal server answers; actions need one. */
  readonly hasTemporal: boolean;
  /** Address of Temporal's UI; null if it is not known. */
  readonly temporalUi: string | null;
  /** What can be done here, and how a page asks for it; none in a static export. */
  readonly actions: readonly ActionForm[];
  /** Says what a static export does not contain; absent: nothing is left out. */
  readonly leftOut?: string | null;
}

/** `POST actions`: with `isConfirmed: false` nothing happens, and `says` tells what would. */
export interface ActionRequest {
  /** Name of an operation, as in `temper ACTION`. */
  readonly action: string;
  /** Its arguments and flags, as of the command, in camel case. */
  readonly input: Readonly<Record<string, string | number | boolean | readonly string[]>>;
  readonly isConfirmed: boolean;
  /** Names this confirmation: sent again, it does nothing twice. */
  readonly requestId?: string;
}

export interface ActionResult {
  readonly says: string;
  readonly isDone: boolean;
  /** Command of the terminal that does the same; empty: there is none. */
  readonly command: string;
  /** What the command prints with `--json`; null before it is done. */
  readonly result: { readonly made?: Made } | null;
}

/** Something that was made, in the `result` of some actions: a run, or a replay of an attempt. */
export interface Made {
  readonly run: string;
  readonly attempt?: string;
}

/** How a page asks for an action. */
export interface ActionForm {
  readonly action: string;
  readonly label: string;
  /** What it is a button of; null: it has none, or one of its own. */
  readonly on: 'run' | 'checkpoint' | 'production' | 'schedule' | null;
  /** States of a run in which its menu has the action. */
  readonly states: readonly RunStateName[] | 'all';
  readonly isDangerous: boolean;
  /** One of the first that a person looks for. */
  readonly isMain: boolean;
  /** Takes minutes. */
  readonly isLong: boolean;
  readonly needsServer: boolean;
  readonly fields: readonly ActionField[];
}

export interface ActionField {
  readonly name: string;
  readonly label: string;
  readonly hint: string | null;
  readonly isRequired: boolean;
  /** `lines`: a list, one a line; `settings`: those of a run, `KEY=VALUE`. */
  readonly kind: 'text' | 'number' | 'switch' | 'lines' | 'settings' | 'choice';
  readonly choices: readonly string[];
  /** Fields of which one must be filled in, if any, perhaps with this value: else it has no effect. */
  readonly needs: readonly { readonly name: string; readonly value: string | null }[];
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
