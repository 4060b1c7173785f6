/** A workflow's doings and messages, in the words of its own code. */
import type { Client } from '@temporalio/client';
import { arrayFromPayloads } from '@temporalio/common';
import type proto from '@temporalio/proto';
import type { HistoryEntry } from './options.ts';

type HistoryEvent = proto.temporal.api.history.v1.IHistoryEvent;
type Payloads = proto.temporal.api.common.v1.IPayloads | null | undefined;
type Failure = proto.temporal.api.failure.v1.IFailure | null | undefined;
type Called = Extract<HistoryEntry, { kind: 'activity' | 'child' }>;

/** Reads all its executions: a workflow that continued as new has several. */
export async function readHistory(client: Client, workflowId: string, firstRunId: string): Promise<HistoryEntry[]> {
  const reader = new HistoryReader(client);
  for (let runId: string | null = firstRunId; runId !== null;) {
    const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    for (const event of events ?? []) await reader.add(event);
    runId = nextRun(events?.at(-1));
  }
  return reader.entries;
}

function nextRun(last: HistoryEvent | undefined): string | null {
  return last?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? null;
}

class HistoryReader {
  readonly entries: HistoryEntry[] = [];
  /** Places of the entries of one execution, by the number of the event that began each. */
  readonly #begun = new Map<number, number>();
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  async add(event: HistoryEvent): Promise<void> {
    const number = Number(event.eventId);
    if (number === 1) this.#begun.clear();
    await this.#addTold(event);
    await this.#begin(number, event);
    await this.#end(event);
  }

  async #addTold({
    workflowExecutionSignaledEventAttributes: signal,
    workflowExecutionUpdateAcceptedEventAttributes: update,
  }: HistoryEvent): Promise<void> {
    if (signal)
      this.entries.push({ kind: 'signal', name: signal.signalName ?? '', args: await this.#decode(signal.input) });
    const asked = update?.acceptedRequest?.input;
    if (asked) this.entries.push({ kind: 'update', name: asked.name ?? '', args: await this.#decode(asked.args) });
  }

  async #begin(number: number, event: HistoryEvent): Promise<void> {
    const activity = event.activityTaskScheduledEventAttributes;
    const child = event.startChildWorkflowExecutionInitiatedEventAttributes;
    const begun = activity ?? child;
    if (!begun) return;
    const name = (activity?.activityType ?? child?.workflowType)?.name ?? '';
    this.#begun.set(number, this.entries.length);
    this.entries.push({ kind: activity ? 'activity' : 'child', name, args: await this.#decode(begun.input) });
  }

  async #end(event: HistoryEvent): Promise<void> {
    const { activityTaskCompletedEventAttributes: done, childWorkflowExecutionCompletedEventAttributes: childDone } =
      event;
    if (done || childDone) {
      const [result] = await this.#decode((done ?? childDone)?.result);
      this.#close(done?.scheduledEventId ?? childDone?.initiatedEventId, { result });
    }
    const failed = event.activityTaskFailedEventAttributes ?? event.activityTaskTimedOutEventAttributes;
    if (failed) this.#close(failed.scheduledEventId, { failure: messageOf(failed.failure) });
    const childFailed = event.childWorkflowExecutionFailedEventAttributes;
    if (childFailed) this.#close(childFailed.initiatedEventId, { failure: messageOf(childFailed.failure) });
  }

  #close(number: unknown, ending: Pick<Called, 'result' | 'failure'>): void {
    const place = this.#begun.get(Number(number));
    if (place !== undefined) this.entries[place] = { ...(this.entries[place] as Called), ...ending };
  }

  async #decode(payloads: Payloads): Promise<unknown[]> {
    const { payloadConverter, payloadCodecs } = this.#client.options.loadedDataConverter;
    let decoded = payloads?.payloads ?? [];
    for (const codec of payloadCodecs.toReversed()) decoded = await codec.decode(decoded);
    return arrayFromPayloads(payloadConverter, decoded);
  }
}

function messageOf(failure: Failure): string {
  return failure?.cause ? messageOf(failure.cause) : (failure?.message ?? '');
}
