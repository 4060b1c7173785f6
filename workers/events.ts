/** Events of the local stack as data; the command line shows them. */

export type ChildState = 'starting' | 'ready' | 'restarting' | 'stopping' | 'stopped';

export interface ChildStatus {
  readonly name: string;
  /** Whose worker it is; null if it plays no agent. */
  readonly agentFile: string | null;
  readonly state: ChildState;
  readonly pid: number | null;
  /** Number of unexpected exits. */
  readonly deaths: number;
}

export type StackEvent =
  /** Progress of an installation or a build; `done` of `total` bytes, null if unknown. */
  | {
      readonly kind: 'progress';
      readonly task: 'temporal-cli' | 'python' | 'model' | 'vllm' | 'stack';
      readonly message: string;
      readonly done: number | null;
      readonly total: number | null;
      readonly elapsedSeconds: number;
      /** True with a task's last event. */
      readonly finished: boolean;
    }
  /** A start waits: for what, since when, at most how long. */
  | { readonly kind: 'waiting'; readonly for: string; readonly seconds: number; readonly limitSeconds: number }
  | { readonly kind: 'child'; readonly child: ChildStatus }
  /** A child ended that should not have; it is started again after `restartInMs`. */
  | {
      readonly kind: 'died';
      readonly name: string;
      readonly exit: string;
      readonly lastLines: readonly string[];
      readonly deaths: number;
      readonly restartInMs: number;
    }
  | { readonly kind: 'notice'; readonly message: string };
