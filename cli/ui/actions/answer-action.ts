/** Requests of actions: what would happen, or, once confirmed, what has happened; a request that is sent again does nothing twice. */
import { z } from 'zod';
import { HttpRefusal } from '../../../play/transports/http-server.ts';
import type { ActionRequest, ActionResult } from '../../../views/api/requests.ts';
import type { ActionPlace, ActionTable } from './planned-action.ts';

const ACTIONS = ['pause', 'resume', 'stop', 'set', 'rollback', 'fork', 'evaluate', 'replay'] as const;
const MAX_TEXT = 4000;
/** Confirmed requests whose results are kept. */
const MOST_KEPT = 500;

const text = z.string().max(MAX_TEXT);
const count = z.int().min(0);
const ActionSchema = z.strictObject({
  action: z.enum(ACTIONS),
  run: text.min(1),
  isConfirmed: z.boolean(),
  requestId: text.min(1).max(100).optional(),
  step: count.optional(),
  settings: z.record(text, text).optional(),
  reason: text.optional(),
  name: text.optional(),
  attempt: text.optional(),
  fromTurn: count.optional(),
  model: text.optional(),
  agentFile: text.optional(),
});

export class ActionDesk {
  readonly #readTable: () => Promise<ActionTable>;
  readonly #place: Omit<ActionPlace, 'gone'>;
  readonly #onDone: (run: string) => void;
  readonly #done = new Map<string, Kept>();

  /** `onDone` is told the run that was acted on. */
  constructor(readTable: () => Promise<ActionTable>, place: Omit<ActionPlace, 'gone'>, onDone: (run: string) => void) {
    this.#readTable = readTable;
    this.#place = place;
    this.#onDone = onDone;
  }

  /** `gone`: whoever asks does not wait any more. */
  answer(body: string, gone: AbortSignal): Promise<ActionResult> {
    const request = parseAction(body);
    const { requestId } = request;
    if (!request.isConfirmed || requestId === undefined) return this.#act(request, gone);
    const before = this.#done.get(requestId);
    if (before === undefined) {
      const over = new AbortController();
      const result = this.#act(request, over.signal);
      return this.#keep(requestId, { body, over, result, waiting: 0 }, gone);
    }
    if (before.body === body) return waitFor(before, gone);
    throw new HttpRefusal(409, 'requestId was used for another action; send a new one', 'request_reused');
  }

  async #act(request: ActionRequest, gone: AbortSignal): Promise<ActionResult> {
    const table = await this.#readTable();
    const planned = await table[request.action](request, { ...this.#place, gone });
    const { command } = planned;
    if (!request.isConfirmed) return { says: planned.says, isDone: false, command, made: null };
    try {
      const { says, made = null } = await planned.perform();
      return { says, isDone: true, command, made };
    } finally {
      this.#onDone(request.run);
    }
  }

  /** A request that failed may be sent again. */
  #keep(requestId: string, kept: Kept, gone: AbortSignal): Promise<ActionResult> {
    for (const oldest of this.#done.keys()) {
      if (this.#done.size < MOST_KEPT) break;
      this.#done.delete(oldest);
    }
    this.#done.set(requestId, kept);
    kept.result.catch(() => this.#done.delete(requestId));
    return waitFor(kept, gone);
  }
}

interface Kept {
  readonly body: string;
  readonly result: Promise<ActionResult>;
  /** Aborted once nobody waits for the result. */
  readonly over: AbortController;
  waiting: number;
}

function waitFor(kept: Kept, gone: AbortSignal): Promise<ActionResult> {
  kept.waiting += 1;
  const leave = (): void => void (--kept.waiting === 0 && kept.over.abort());
  gone.addEventListener('abort', leave, { once: true });
  return kept.result;
}

function parseAction(body: string): ActionRequest {
  const parsed = ActionSchema.safeParse(parseJsonBody(body));
  if (parsed.success) return parsed.data as ActionRequest;
  const [issue] = parsed.error.issues;
  const place = issue?.path.join('.') || 'the body';
  throw new HttpRefusal(422, `${place}: ${issue?.message ?? 'not an action'}; see docs/ui-api.md`, 'invalid_value');
}

export function parseJsonBody(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new HttpRefusal(400, `a body must be JSON, got ${JSON.stringify(body.slice(0, 80))}`, 'invalid_json');
  }
}
