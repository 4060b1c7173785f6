/** Serves a policy over HTTP with a separate engine, in every dialect. */
import { DEADLINE_HEADER } from '../../core/wire-constants.ts';
import { answerRequest, type ModelReply, type ModelRequest } from '../../play/dialects/answer-request.ts';
import type { KeyedServer } from '../../play/transports/keyed-server.ts';
import { openServingHttp, type ServingOptions } from './serving-http.ts';
import { KeptAnswers, RecentCalls } from './kept-answers.ts';
import { PolicyAnswerer, type ServedPolicy } from './policy-answerer.ts';
import { CONVERSATION_HEADER, type AnswerRecorder } from './recording/answer-recorder.ts';
import type { ServedEngine } from './served-engine.ts';

/** Headers of every answer: which checkpoint made it. */
const POLICY_HEADER = 'x-temper-policy';
const ADAPTER_HEADER = 'x-temper-adapter';

export type PolicyServingOptions = Omit<ServingOptions, 'models' | 'answer' | 'kept'> & {
  /** Names that `/v1/models` lists. */
  readonly models: readonly string[];
  /** Policy for a request that comes now; a request in flight keeps its own. */
  readonly policy: () => ServedPolicy;
  /** Null while there is none yet. */
  readonly engine: () => Pick<ServedEngine, 'connection'> | null;
  readonly recorder?: AnswerRecorder;
};

export function servePolicy({ policy, engine, recorder, ...options }: PolicyServingOptions): Promise<KeyedServer> {
  const memory = new KeptAnswers();
  const answered = new RecentCalls();
  const answer = async (request: ModelRequest): Promise<ModelReply> => {
    const asked = policy();
    const answerer = new PolicyAnswerer({
      policy: asked,
      connection: engine()?.connection() ?? null,
      answered,
      deadline: request.headers.get(DEADLINE_HEADER),
      recorder: recorder ?? null,
      place: { api: request.path.replace(/^.*\/v1\//, ''), named: request.headers.get(CONVERSATION_HEADER) },
    });
    const reply = await answerRequest(request, answerer, { memory });
    // Attempts always get 400; a client of a server may retry after 429 and 503.
    if ('json' in reply && answerer.refusal !== null) return { ...reply, ...answerer.refusal };
    const { conversation } = answerer;
    const made = { [POLICY_HEADER]: asked.name, [ADAPTER_HEADER]: asked.adapterSha256 };
    const recorded = conversation === null ? {} : { [CONVERSATION_HEADER]: conversation };
    return { ...reply, headers: { ...reply.headers, ...(reply.status === 200 ? { ...made, ...recorded } : {}) } };
  };
  return openServingHttp({ ...options, kept: memory, answer });
}
