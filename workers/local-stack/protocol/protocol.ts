/**
 * JSON lines between the daemon and the command lines that hold it. `describe` and the version in its answer stay as they
 * are in every version of Temper: by them a command of another version finds out that it must not join.
 */
import type { Socket } from 'node:net';
import type { EngineSettings } from '../../../core/contract/engine.ts';
import type { FailureType } from '../../../core/contract/failures.ts';
import { parseJson } from '../../../core/text/json-text.ts';
import { LineSplitter } from '../../../core/text/lines.ts';
import type { MergedEngine } from '../../config/config.ts';
import type { ChildStatus, StackEvent } from '../../events.ts';
import type { MetricsAddress } from '../../metrics/metrics-server.ts';
import type { WantedPorts } from './ports.ts';

/** Exit code of a daemon that found another one holding the project. */
export const EXIT_LOCKED = 3;

/** The part that every GPU worker of a project has to know. */
export interface GpuWorkerSpec {
  /** The configuration under the flags of the command that starts it. */
  readonly engine: MergedEngine;
  /** A Python that has vLLM; null if another engine samples. */
  readonly vllmPython: string | null;
  readonly storeUri: string;
  readonly queues: { readonly workflows: string; readonly gpu: string };
}

/** Specification of a stack: the first command line sets it, later ones adopt it. */
export interface StackSpec extends GpuWorkerSpec {
  readonly project: string;
  /** Command line of Temporal's dev server up to its flags; null if another server is used. */
  readonly temporalCommand: readonly string[] | null;
  /** A server elsewhere; null if the stack has its own. */
  readonly temporal: { readonly address: string; readonly namespace: string } | null;
  /** Command line of the GPU worker up to its flags; null if an engine elsewhere is used. */
  readonly gpuWorkerCommand: readonly string[] | null;
  /** A second GPU worker waits with its imports done, to take the place of one that dies. */
  readonly standby: boolean;
  /** Command line of the TypeScript worker; its options follow as one JSON argument. */
  readonly workerCommand: readonly string[];
  readonly ports: WantedPorts;
  /** Address of the metrics of all its processes; null: none. */
  readonly metrics: MetricsAddress | null;
}

export interface StackDescription {
  /** Version of Temper that started it; absent in older files. */
  readonly version?: string;
  /** Requested settings of its GPU worker: `auto` by default. */
  readonly engine: EngineSettings;
  readonly pid: number;
  readonly temporalAddress: string;
  readonly namespace: string;
  readonly uiUrl: string | null;
  /** Absent in older files; null: it serves none. */
  readonly metricsUrl?: string | null;
  readonly engineUrl: string;
  readonly storeUri: string;
  readonly ownsServer: boolean;
}

export interface AgentRequest {
  readonly file: string;
  readonly codeSha256: string;
}

export type ClientMessage =
  | { readonly type: 'describe' }
  | {
      readonly type: 'attach';
      readonly agents: readonly AgentRequest[];
      readonly models: Readonly<Record<string, string>>;
    }
  | { readonly type: 'detach' };

export type DaemonMessage =
  | { readonly type: 'described'; readonly stack: StackDescription }
  | { readonly type: 'attached'; readonly stack: StackDescription }
  | { readonly type: 'refused'; readonly failure: FailureType | null; readonly message: string }
  | { readonly type: 'status'; readonly children: readonly ChildStatus[] }
  | { readonly type: 'event'; readonly event: StackEvent }
  /** This command line is let go: `others` still hold the stack, and play these agents. */
  | { readonly type: 'detached'; readonly others: number; readonly agents: readonly string[] }
  /** Everything that the daemon started has ended. */
  | { readonly type: 'ended' };

export function sendMessage(socket: Socket, message: ClientMessage | DaemonMessage): void {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
}

/** Lines are taken at their word: the socket is open to this user's own processes alone. */
export function readMessages(socket: Socket, onMessage: (message: unknown) => void): void {
  const splitter = new LineSplitter();
  // The socket's end is reported by 'close'.
  socket.on('error', () => undefined);
  socket.setEncoding('utf8').on('data', (text: string) => {
    for (const line of splitter.push(text)) {
      // A line cut off by a killed process is ignored.
      const message = parseJson(line) ?? null;
      if (message !== null) onMessage(message);
    }
  });
}
