/** Plays one attempt outside of any run: the same recorder and the same rules, and all that it recorded stays in memory. */
import type { Metrics } from '../core/numbers/statistics.ts';
import type { AttemptRecord, CallRecord, HostedCallRecord } from '../store/records/groups/trajectories.ts';
import { Attempts, type AttemptsOptions, type AttemptsProgress, type PlannedAttempt } from './play-attempts.ts';
import { decodeSegment, type JournalEntry } from './recorder/journal.ts';
import type { AnswerFacts, Recorder } from './recorder/recorder.ts';

export interface SingleOptions extends Pick<
  AttemptsOptions,
  | 'agent'
  | 'engine'
  | 'policy'
  | 'mode'
  | 'rollout'
  | 'place'
  | 'signal'
  | 'rewrite'
  | 'acceptsAnyModel'
  | 'connectHosted'
  | 'resources'
> {
  readonly planned: PlannedAttempt;
  /** Segments of a journal: what they hold is answered from them. */
  readonly existing?: readonly Uint8Array[];
  readonly onRecorder?: (recorder: Recorder) => void;
  /** Told how it goes on while it is played. */
  readonly onBegin?: (progress: () => AttemptsProgress) => void;
}

export interface SingleAttempt {
  readonly record: AttemptRecord;
  /** The record's calls in the order in which the agent asked. */
  readonly asked: readonly CallRecord[];
  /** Journal entries: answers as they came, and values of `once`. */
  readonly entries: readonly JournalEntry[];
  readonly facts: readonly AnswerFacts[];
  readonly seconds: number;
  /** The error of the agent's code, with its line: a record keeps the message alone. Null if it returned. */
  readonly thrown: { readonly error: unknown } | null;
}

/** The outcome of an attempt for tests. */
export interface AttemptOutcome {
  /** Null where the attempt failed, was ended, or where a judge alone gives rewards. */
  readonly reward: number | null;
  readonly metrics: Readonly<Metrics>;
  readonly logs: readonly string[];
  /** The failure as a trajectory records it: the agent's error, or the rule that it broke; null if it returned. */
  readonly failure: string | null;
  /** The agent's error with its stack. */
  readonly error: unknown;
  /** Requests and answers, in the order in which the agent asked. */
  readonly calls: readonly CallRecord[];
  /** Calls of hosted models, the shortest prompts first. */
  readonly hostedCalls: readonly HostedCallRecord[];
}

export function outcomeOf({ record, asked, thrown }: SingleAttempt): AttemptOutcome {
  const { reward, metrics, logs, failure, hostedCalls = [] } = record;
  return { reward, metrics, logs, failure: failure?.message ?? null, error: thrown?.error, calls: asked, hostedCalls };
}

/** Throws the abort reason of an attempt that must be discarded. */
export async function playSingle(options: SingleOptions): Promise<SingleAttempt> {
  const { planned, existing = [], onRecorder, onBegin, ...rest } = options;
  const segments: Uint8Array[] = [];
  const facts: AnswerFacts[] = [];
  let thrown: SingleAttempt['thrown'] = null;
  const playing = new Attempts({
    ...rest,
    planned: [planned],
    concurrency: 1,
    segments: { existing: [...existing], append: (bytes) => void segments.push(bytes), close: () => undefined },
    attemptKey: (attempt) => `single/${planned.scenarioIndex}.${attempt}`,
    isFresh: () => true,
    onAnswer: (answer) => void facts.push(answer),
    onThrow: (error) => (thrown = { error }),
    ...(onRecorder && { onRecorder: (_attempt, recorder) => onRecorder(recorder) }),
  });
  onBegin?.(() => playing.progress());
  const start = performance.now();
  const [record] = await playing.play();
  const seconds = (performance.now() - start) / 1000;
  const { attempt, calls } = record!;
  const asked = (playing.callOrders()[attempt] ?? []).map((index) => calls[index]!);
  return {
    record: record!,
    asked,
    entries: segments.flatMap((segment) => [...decodeSegment(segment)]),
    facts,
    seconds,
    thrown,
  };
}
