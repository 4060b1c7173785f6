/**
 * Plays a saved attempt again with the agent as it is now. A request that is unchanged gets its recorded answer; the
 * first one that is not ends the attempt, and is shown beside the recorded one.
 */
import type { CallRequest } from '../../store/records/trajectories.ts';
import type { Agent } from '../agent.ts';
import type { EngineConnection } from '../connections/engine-connection.ts';
import { callName } from '../recorder/recorded-calls.ts';
import type { Recorder } from '../recorder/recorder.ts';
import { outcomeOf, playSingle, type AttemptOutcome } from '../single-attempt.ts';
import { describeDifference, differencesOf, type Difference } from './difference.ts';
import { firstChoices, journalOf, type SavedAttempt, type SavedCall } from './saved-attempt.ts';

/** A request that the record does not answer. */
export interface ChangedRequest {
  /** Counted from 1, in the order in which the agent asks. */
  readonly call: number;
  /** The recorded request in whose place it stands; null where the record has no further one. */
  readonly recorded: CallRequest | null;
  readonly asked: CallRequest;
  readonly differences: readonly Difference[];
  /** For people, with the first differences. */
  readonly text: string;
}

export interface ReplayedAttempt extends AttemptOutcome {
  /** Null where every request was the recorded one. */
  readonly changed: ChangedRequest | null;
  /** Recorded calls that the agent did not make again. */
  readonly notAsked: readonly SavedCall[];
}

const SHOWN_DIFFERENCES = 5;

export async function replaySaved(agent: Agent, saved: SavedAttempt): Promise<ReplayedAttempt> {
  const { scenario, scenarioIndex, attempt, place, mode, rollout, model, adapterSha256 } = saved;
  const engine = new RefusingEngine();
  const played = await playSingle({
    agent,
    engine,
    planned: { scenario, scenarioIndex, attempt },
    existing: [journalOf(saved)],
    policy: { model, adapterSha256 },
    mode,
    rollout,
    place,
    signal: new AbortController().signal,
    onRecorder: (recorder) => engine.attach(recorder),
  });
  const { asked } = played;
  const made = new Set(asked.map(callName));
  const notAsked = saved.calls.filter((call) => !made.has(callName(call)));
  const { request } = engine;
  return {
    ...outcomeOf(played),
    changed: request === null ? null : describeChange(saved, request, notAsked[0] ?? null, firstChoices(asked).length),
    notAsked,
  };
}

function describeChange(
  saved: SavedAttempt,
  asked: CallRequest,
  expected: SavedCall | null,
  made: number,
): ChangedRequest {
  const call = made + 1;
  if (expected === null) {
    const text = `the agent asks for answer ${call}, but the record has ${saved.calls.length}: ${JSON.stringify(asked.messages.at(-1))}`;
    return { call, recorded: null, asked, differences: [], text };
  }
  // A seed that the agent sets itself is no part of what is asked.
  const { seed: _seed, ...recorded } = expected.request;
  const differences = differencesOf(recorded, asked);
  const shown = differences.slice(0, SHOWN_DIFFERENCES).map(describeDifference);
  const more = differences.length - shown.length;
  const lines = [...shown, ...(more > 0 ? [`and ${more} more differences`] : [])];
  const text = `call ${call} is not the recorded one:\n${lines.join('\n')}`;
  return { call, recorded: expected.request, asked, differences, text };
}

/** Has no answers: the first request that reaches it ends the attempt. */
class RefusingEngine implements EngineConnection {
  readonly url = 'http://recorded.invalid';
  readonly keyVariable = null;
  request: CallRequest | null = null;
  #recorder: Recorder | null = null;

  attach(recorder: Recorder): void {
    this.#recorder = recorder;
  }

  post(body: string): Promise<never> {
    this.request ??= requestOf(body);
    this.#recorder?.ending.failAs('the agent asks what the record does not answer');
    return Promise.reject(new Error('the record has no answer'));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Without what the recorder added for the engine. */
function requestOf(body: string): CallRequest {
  const {
    model: _model,
    seed: _seed,
    logprobs: _logprobs,
    return_token_ids: _ids,
    ...request
  } = JSON.parse(body) as CallRequest;
  return request;
}
