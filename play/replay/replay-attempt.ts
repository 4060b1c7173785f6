/**
 * Plays a saved attempt again with the agent as it is now. A request that is unchanged gets its recorded answer; the
 * first one that is not ends the attempt, and is shown beside the recorded one.
 */
import type { CallRequest } from '../../store/records/groups/trajectories.ts';
import type { Agent } from '../agent.ts';
import type { EngineConnection } from '../connections/engine-connection.ts';
import { callName } from '../recorder/recorded-calls.ts';
import type { Recorder } from '../recorder/recorder.ts';
import type { AgentResources } from '../resources/agent-resources.ts';
import { outcomeOf, playSingle, type AttemptOutcome } from '../single-attempt.ts';
import { describeDifference, differencesOf, type Difference } from './difference.ts';
import { firstChoices, journalOf, type SavedAttempt, type SavedCall, type SavedHostedCall } from './saved-attempt.ts';

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
  /** Recorded calls that the agent did not make again; those of hosted models name their model. */
  readonly notAsked: readonly (SavedCall | SavedHostedCall)[];
}

const SHOWN_DIFFERENCES = 5;

export async function replaySaved(
  agent: Agent,
  saved: SavedAttempt,
  resources: AgentResources | null = null,
): Promise<ReplayedAttempt> {
  const { scenario, scenarioIndex, attempt, players, place, mode, rollout, model, adapterSha256 } = saved;
  const record = new UnansweredRecord();
  const played = await playSingle({
    agent,
    resources,
    engine: record.engineOf(null),
    planned: { scenario, scenarioIndex, attempt, ...(players && { players }) },
    existing: [journalOf(saved)],
    policy: { model, adapterSha256 },
    mode,
    rollout,
    place,
    signal: new AbortController().signal,
    onRecorder: (recorder) => record.attach(recorder),
    connectHosted: ({ name }) => record.engineOf(name),
  });
  const asked = [...firstChoices(played.asked), ...(played.record.hostedCalls ?? [])];
  const made = new Set(asked.map(callName));
  const notAsked = [...saved.calls, ...(saved.hostedCalls ?? [])].filter((call) => !made.has(callName(call)));
  const { unanswered } = record;
  return {
    ...outcomeOf(played),
    changed: unanswered === null ? null : describeChange(saved, unanswered, made),
    notAsked,
  };
}

/** The first request without an answer; `model` is a hosted one's name, null is the policy. */
interface Unanswered {
  readonly model: string | null;
  readonly request: CallRequest;
}

function describeChange(saved: SavedAttempt, { model, request: asked }: Unanswered, made: Set<string>): ChangedRequest {
  const calls = model === null ? saved.calls : (saved.hostedCalls ?? []).filter((call) => call.model === model);
  const left = calls.filter((call) => !made.has(callName(call)));
  const call = calls.length - left.length + 1;
  const of = model === null ? '' : ` of ${model}`;
  const [expected] = left;
  if (expected === undefined) {
    const text = `the agent asks for answer ${call}${of}, but the record has ${calls.length}: ${JSON.stringify(asked.messages.at(-1))}`;
    return { call, recorded: null, asked, differences: [], text };
  }
  // A seed that the agent sets itself is no part of what the policy is asked.
  const { seed, ...rest } = expected.request;
  const recorded = model === null || seed === undefined ? rest : { ...rest, seed };
  const differences = differencesOf(recorded, asked);
  const shown = differences.slice(0, SHOWN_DIFFERENCES).map(describeDifference);
  const more = differences.length - shown.length;
  const lines = [...shown, ...(more > 0 ? [`and ${more} more differences`] : [])];
  const text = `call ${call}${of} is not the recorded one:\n${lines.join('\n')}`;
  return { call, recorded: expected.request, asked, differences, text };
}

/** Has no answers beyond those of the journal: the first request that reaches it ends the attempt. */
class UnansweredRecord {
  unanswered: Unanswered | null = null;
  #recorder: Recorder | null = null;

  attach(recorder: Recorder): void {
    this.#recorder = recorder;
  }

  engineOf(model: string | null): EngineConnection {
    return {
      url: 'http://recorded.invalid',
      keyVariable: null,
      post: (body) => {
        this.unanswered ??= { model, request: requestOf(body, model) };
        this.#recorder?.ending.failAs('the agent asks what the record does not answer');
        return Promise.reject(new Error('the record has no answer'));
      },
      close: () => Promise.resolve(),
    };
  }
}

/** Without what the recorder added for the engine; a hosted model is asked as the agent asked. */
function requestOf(body: string, hosted: string | null): CallRequest {
  const { model: _model, ...asked } = JSON.parse(body) as CallRequest;
  if (hosted !== null) return asked;
  const { seed: _seed, logprobs: _logprobs, return_token_ids: _ids, ...request } = asked;
  return request;
}
