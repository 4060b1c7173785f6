/** Requests of actions: what would happen, or, once confirmed, what has happened; a request that is sent again does nothing twice. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { badConfig } from '../../../core/contract/failures.ts';
import { capitalised, commandOf } from '../../../operations/words.ts';
import { HttpRefusal } from '../../../play/transports/http-server.ts';
import type { ActionRequest, ActionResult } from '../../../views/api/requests.ts';
import { readInput, textOf } from '../../command-line/to-command.ts';
import type { UiPlace } from '../chat/engines.ts';
import { UI_OPERATIONS, type UiOperation } from './operations.ts';

const MAX_TEXT = 4000;
/** Confirmed requests whose results are kept. */
const MOST_KEPT = 500;

const text = z.string().max(MAX_TEXT);
const ActionSchema = z.strictObject({
  action: text,
  input: z.record(text, z.union([text, z.number(), z.boolean(), z.array(text).max(1000)])),
  isConfirmed: z.boolean(),
  requestId: text.min(1).max(100).optional(),
});

type DeskPlace = Omit<UiPlace, 'gone' | 'requestId' | 'isNamed'>;

export class ActionDesk {
  readonly #place: DeskPlace;
  readonly #onDone: (run: string) => void;
  readonly #operations: readonly UiOperation[];
  readonly #done = new Map<string, Kept>();

  /** `onDone` is told the run that was acted on. */
  constructor(place: DeskPlace, onDone: (run: string) => void, operations = UI_OPERATIONS) {
    this.#place = place;
    this.#onDone = onDone;
    this.#operations = operations;
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

  /** What an operation without input finds. */
  read<Found>(operation: { run(input: object, place: UiPlace): Promise<Found> }, gone: AbortSignal): Promise<Found> {
    return operation.run({}, { ...this.#place, gone, requestId: randomUUID(), isNamed: false });
  }

  async #act(
    { action, input: given, isConfirmed, requestId }: ActionRequest,
    gone: AbortSignal,
  ): Promise<ActionResult> {
    const operation = this.#operations.find(({ name }) => name === action);
    if (operation === undefined)
      throw badConfig(
        `action must be one of ${this.#operations.map(({ name }) => name).join(', ')}, got ${JSON.stringify(action.slice(0, 80))}; see docs/ui-api.md`,
      );
    const { input, words } = readInput(operation, given);
    const place = { ...this.#place, gone, requestId: requestId ?? randomUUID(), isNamed: requestId !== undefined };
    const planned = (await operation.says?.(input, place)) ?? `${capitalised(operation.summary)}.`;
    const { says, command } =
      typeof planned === 'string' ? { says: planned, command: commandOf(operation, words) } : planned;
    if (!isConfirmed) return { says, isDone: false, command, result: null };
    try {
      const result = await operation.run(input, place);
      const lines = await Promise.all((await operation.lines(result, input)).map(textOf));
      return { says: lines.join('\n'), isDone: true, command, result: result as ActionResult['result'] };
    } finally {
      this.#onDone(runOf(given));
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

/** The run that is acted on, by its name or by that of a checkpoint. */
function runOf({ run, checkpoint = run }: ActionRequest['input']): string {
  return typeof checkpoint === 'string' ? (/^[^@~:]*/.exec(checkpoint)?.[0] ?? '') : '';
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
  if (parsed.success) {
    const { requestId, ...request } = parsed.data;
    return requestId === undefined ? request : { ...request, requestId };
  }
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
