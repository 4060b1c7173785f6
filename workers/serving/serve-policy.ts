/** Serves a policy over HTTP with a separate engine, in every dialect. */
import { DEADLINE_HEADER } from '../../core/wire-constants.ts';
import { answerRequest, type ModelReply, type ModelRequest } from '../../play/dialects/answer-request.ts';
import type { KeyedServer } from '../../play/transports/keyed-server.ts';
import { openServingHttp, type ServingOptions } from './serving-http.ts';
import { KeptAnswers, RecentCalls } from './kept-answers.ts';
import { PolicyAnswerer, type ServedPolicy } from './policy-answerer.ts';
import type { ServedEngine } from './served-engine.ts';

export type PolicyServingOptions = Omit<ServingOptions, 'models' | 'answer' | 'kept'> & {
  readonly policy: ServedPolicy;
  /** Null while there is none yet. */
  readonly engine: () => Pick<ServedEngine, 'connection'> | null;
};

export function servePolicy({ policy, engine, ...options }: PolicyServingOptions): Promise<KeyedServer> {
  const memory = new KeptAnswers();
  const answered = new RecentCalls();
  const answer = async (request: ModelRequest): Promise<ModelReply> => {
    const deadline = request.headers.get(DEADLINE_HEADER);
    const answerer = new PolicyAnswerer({ policy, connection: engine()?.connection() ?? null, answered, deadline });
    const reply = await answerRequest(request, answerer, { memory });
    // Attempts always get 400; a client of a server may retry after 429 and 503.
    return 'json' in reply && answerer.refusal !== null ? { ...reply, ...answerer.refusal } : reply;
  };
  return openServingHttp({ ...options, models: policy.names, kept: memory, answer });
}
