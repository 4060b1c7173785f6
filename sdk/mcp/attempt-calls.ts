/**
 * Calls of one attempt to one MCP server. Each: key and occurrence → journal, or else the server → journal → agent. A call
 * that may not be made twice is noted before it is made: where that note has no result, its outcome is unknown.
 */
import { TemperError } from '../../core/contract/failures.ts';
import type { AttemptHooks } from '../../play/attempt-hooks.ts';
import { askTool, bound } from '../../play/mcp/ask-tool.ts';
import type { Connection } from '../../play/mcp/connection.ts';
import { listTools, type ListedTool } from '../../play/mcp/list-tools.ts';
import { CallFailed, ServerLost, TimedOut } from '../../play/mcp/server-errors.ts';
import { describeServer } from '../../play/mcp/server-spec.ts';
import { leaseServer, type ServerLease } from '../../play/mcp/servers.ts';
import { hashBytes } from '../../store/bytes/sha256.ts';
import type { ServerSettings } from './mcp-options.ts';
import type { Once } from '../tools/run-call.ts';

/** The result of a call, as the model gets it and the journal keeps it. */
export interface CallOutcome {
  readonly text: string;
  readonly failed: boolean;
  /** It is not the server's answer: nothing is known of what it did. */
  readonly isUnknown?: true;
}

interface Attempt extends McpContext {
  readonly hooks: AttemptHooks | null;
  /** Tells servers of one kind apart. */
  readonly number: number;
}

interface Call {
  readonly tool: ListedTool;
  readonly args: Record<string, unknown>;
}

const HASH_CHARACTERS = 16;
/** A call that ends its server would do so again each time it is made, and its run would never end. */
const SAME_DEATHS = 5;
const UNKNOWN = 'the attempt was interrupted during this call, so it may have taken effect; it was not made again';
const STATE_LOST =
  'the server was started again, and what earlier calls left there may be lost; this call was not made';

export class AttemptCalls {
  readonly #settings: ServerSettings;
  readonly #attempt: Attempt;
  readonly #lease: ServerLease;
  readonly #label: string;
  readonly #occurrences = new Map<string, number>();
  /** Those that the server answered, also before the attempt was interrupted. */
  readonly #answered: Call[] = [];
  #connecting: Promise<unknown> = Promise.resolve();
  /** The model knows that the server it talked to is gone. */
  #isLossReported = false;
  readonly #over = new AbortController();

  constructor(settings: ServerSettings, attempt: Attempt) {
    const { hooks, number, signal } = attempt;
    this.#settings = settings;
    this.#attempt = attempt;
    this.#label = `mcp ${hashOf(identityOf(settings))} ${number}`;
    this.#lease = leaseServer(settings.spec, hooks?.folder ?? process.cwd());
    const end = (): Promise<void> => this.#end();
    if (hooks !== null) hooks.onEnd(end);
    else signal.addEventListener('abort', () => void end(), { once: true });
  }

  /** The attempt keeps the list that it began with. */
  list(): Promise<ListedTool[]> {
    const { spec, selection } = this.#settings;
    return this.#attempt.once(`${this.#label} tools`, async () => {
      try {
        return await listTools((await this.#lease.connect()).connection, spec, selection);
      } catch (error) {
        throw this.refuse(error);
      }
    });
  }

  async call(tool: ListedTool, args: Record<string, unknown>): Promise<CallOutcome> {
    // Before anything is waited for: equal calls are distinguished by the order in which they are made.
    const key = this.#keyOf(tool, args);
    const outcome = await this.#attempt.once(key, () => this.#make({ tool, args }, key));
    if (outcome.isUnknown !== true) this.#answered.push({ tool, args });
    return outcome;
  }

  /** Ends the attempt by what is no data, and returns the error to throw. */
  refuse(error: unknown): Error {
    if (this.#over.signal.aborted || this.#attempt.signal.aborted) return error as Error;
    const failure = error instanceof TemperError ? error : this.#outage(error as Error);
    this.#attempt.hooks?.abort(failure);
    return failure;
  }

  #keyOf({ name }: ListedTool, args: object): string {
    const key = `${this.#label} ${name} ${hashOf(JSON.stringify(args))}`;
    const occurrence = this.#occurrences.get(key) ?? 0;
    this.#occurrences.set(key, occurrence + 1);
    return `${key} ${occurrence}`;
  }

  async #make(call: Call, key: string): Promise<CallOutcome> {
    try {
      const { connection, isStateLost } = await this.#connect();
      this.#isLossReported ||= isStateLost;
      if (isStateLost) return { text: STATE_LOST, failed: true, isUnknown: true };
      if (!(await this.#begin(call.tool, key))) return { text: UNKNOWN, failed: true, isUnknown: true };
      return await this.#ask(connection, call);
    } catch (error) {
      if (error instanceof ServerLost && !this.#over.signal.aborted) return this.#judgeLoss(error, key);
      throw this.refuse(error);
    }
  }

  /** One after the other: a new server gets what it must know before any call. */
  #connect(): Promise<{ connection: Connection; isStateLost: boolean }> {
    const connecting = this.#connecting.then(async () => {
      const { connection, isNew } = await this.#lease.connect();
      const hasState = isNew && this.#settings.spec.isolate;
      if (hasState && this.#settings.replay) for (const call of this.#answered) await this.#ask(connection, call);
      const mayMatter = hasState && !this.#settings.replay && !this.#isLossReported;
      const isStateLost = mayMatter && this.#answered.some(({ tool }) => !tool.isReadOnly);
      return { connection, isStateLost };
    });
    this.#connecting = connecting.catch(() => undefined);
    return connecting;
  }

  /** False for a call that was begun before the attempt was interrupted, and must not be made twice. */
  async #begin({ isReadOnly, isIdempotent }: ListedTool, key: string): Promise<boolean> {
    if (isReadOnly || isIdempotent || this.#settings.replay) return true;
    let isFirst = false;
    await this.#attempt.once(`${key} begun`, () => (isFirst = true));
    return isFirst;
  }

  async #ask(connection: Connection, { tool, args }: Call): Promise<CallOutcome> {
    const { maxResultBytes } = this.#settings;
    const shown = (text: string): string => bound(connection.redact(text), maxResultBytes);
    try {
      const { text, failed } = await this.#askAgain(connection, { tool, args });
      return { text: shown(text), failed };
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error;
      const unknown = error instanceof TimedOut ? { isUnknown: true as const } : {};
      return { text: shown(error.message), failed: true, ...unknown };
    }
  }

  /** A call that never reached the server is made on another connection. */
  async #askAgain(connection: Connection, { tool, args }: Call): Promise<{ text: string; failed: boolean }> {
    try {
      return await askTool(connection, tool, args, this.#over.signal);
    } catch (error) {
      if (!(error instanceof ServerLost) || error.wasSent || this.#settings.spec.isolate) throw error;
      return askTool((await this.#lease.connect()).connection, tool, args, this.#over.signal);
    }
  }

  /** A server that ended by itself is reported to the model; an outage is no data, unless it happens again and again. */
  #judgeLoss(lost: ServerLost, key: string): CallOutcome {
    const deaths = lost.isOutage ? (this.#attempt.hooks?.countDeath(key) ?? 1) : SAME_DEATHS;
    if (deaths < SAME_DEATHS) throw this.refuse(lost);
    this.#isLossReported = true;
    return { text: `${lost.message} during this call, so it may have taken effect`, failed: true, isUnknown: true };
  }

  #outage(error: Error): TemperError {
    const message = `${describeServer(this.#settings.spec)}: ${error.message}; the attempt is played again`;
    return new TemperError('ProgramFailed', message, { cause: error });
  }

  async #end(): Promise<void> {
    this.#over.abort();
    await this.#lease.release();
  }
}

/** Without secrets, which may change while a run goes on. */
export function identityOf({ spec, selection }: ServerSettings): string {
  const place = spec.kind === 'url' ? [spec.url] : [spec.command, ...spec.args];
  return JSON.stringify([spec.kind, place, selection]);
}

function hashOf(text: string): string {
  return hashBytes(Buffer.from(text)).slice(0, HASH_CHARACTERS);
}

/** A rollout's context will do, and so will that of an attempt of a script. */
export interface McpContext {
  once: Once;
  signal: AbortSignal;
}
