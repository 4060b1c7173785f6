/** A policy behind HTTP: the front before an engine of its own, in every dialect. */
import { DEADLINE_HEADER } from '../../core/wire-constants.ts';
import { answerRequest, type ModelReply, type ModelRequest } from '../../play/dialects/answer-request.ts';
import { openFront, type Front, type FrontOptions } from './front.ts';
import { KeptAnswers, RecentCalls } from './kept-answers.ts';
import { PolicyAnswerer, type ServedPolicy } from './policy-answerer.ts';
import type { ServedEngine } from './served-engine.ts';

export type PolicyFrontOptions = Omit<FrontOptions, 'models' | 'answer' | 'kept'> & {
  readonly policy: ServedPolicy;
  /** Null while there is none yet. */
  readonly engine: () => Pick<ServedEngine, 'connection'> | null;
};

export function openPolicyFront({ policy, engine, ...options }: PolicyFrontOptions): Promise<Front> {
  const memory = new KeptAnswers();
  const answered = new RecentCalls();
  const answer = async (request: ModelRequest): Promise<ModelReply> => {
    const deadline = request.headers.get(DEADLINE_HEADER);
    const answerer = new PolicyAnswerer({ policy, connection: engine()?.connection() ?? null, answered, deadline });
    const reply = await answerRequest(request, answerer, { memory });
    // Attempts are told 400, whatever it was; a client of a server may try again after 429 and 503.
    return 'json' in reply && answerer.told !== null ? { ...reply, ...answerer.told } : reply;
  };
  return openFront({ ...options, models: policy.names, kept: memory, answer });
}
