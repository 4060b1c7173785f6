/** A conversation longer than the model's context ends as data, like any other failed attempt: it is no failure of the engine. */
import { BODY_TOO_LARGE, CONTEXT_TOO_LONG } from '../../core/wire-constants.ts';

interface Refused {
  readonly status?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
}

/** 413: it was too long to be sent at all. */
const STATUSES: readonly unknown[] = [400, 413];
const CODES: readonly unknown[] = [CONTEXT_TOO_LONG, BODY_TOO_LARGE];
/** As vLLM says it, without a code. */
const TEXT = /maximum context length/;

/** As OpenAI, the GPU worker and vLLM refuse what is longer than the model can read. */
export function hasOutgrown({ status, code, message }: Refused): boolean {
  return STATUSES.includes(status) && (CODES.includes(code) || TEXT.test(String(message)));
}
