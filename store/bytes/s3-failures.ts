/** An S3 server's refusal in words: which store, why, and what to do. Nothing of the request is kept: it is signed. */
import { TemperError } from '../../core/contract/failures.ts';
import { S3_REFUSALS } from '../../core/contract/wire-constants.ts';

/** The store's name for users. */
export interface S3Place {
  uri: string;
  /** Null for AWS itself. */
  endpoint: string | null;
}

/** Names that the SDK gives to an answer that S3 would not give. */
const NAMELESS: ReadonlySet<string> = new Set(['Error', 'Unknown', 'UnknownError']);
const MAX_DETAIL = 300;

/** Failures that are typed already pass unchanged. `hasAnswered`: the server took a request of this process before. */
export function asS3Failure(error: unknown, { uri, endpoint }: S3Place, hasAnswered = false): TemperError {
  if (error instanceof TemperError) return error;
  const name = nameOf(error);
  const [retried, remedy] = isKnown(name) ? S3_REFUSALS[name] : [retriedAt(statusOf(error) ?? 0), detailOf(error)];
  const isRetried = retried === 'always' || (retried === 'once-answered' && hasAnswered);
  const at = endpoint === null ? '' : ` at ${endpoint}`;
  // The SDK's own error carries the request, signature and all.
  const cause = new Error(`${name}: ${detailOf(error)}`);
  const message = `the store ${uri}${at} refused (${name}): ${remedy}`;
  return new TemperError(isRetried ? 'StoreUnavailable' : 'BadConfig', message, { cause });
}

/** An answer to HEAD has no body, and 400 has many reasons: the next request's answer explains. */
export const isUnexplained = (error: unknown): boolean => statusOf(error) === 400;

/** Another writer's object has this key already. */
export const isTaken = (error: unknown): boolean => statusOf(error) === 412;

/** Another writer is writing this key: nothing is decided yet. */
export const isContended = (error: unknown): boolean => statusOf(error) === 409;

/** The received bytes differ from the stored ones. */
export function isChecksumMismatch(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('Checksum mismatch');
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Error';
  if (/^Region (is missing|not accepted)/.test(error.message)) return 'MissingRegion';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const status = statusOf(error) ?? 0;
  const isWeb = status === 404 && NAMELESS.has(code);
  return [code, error.name, String(status)].find(isKnown) ?? (isWeb ? 'NotFound' : code);
}

function isKnown(name: string): name is keyof typeof S3_REFUSALS {
  return Object.hasOwn(S3_REFUSALS, name);
}

/** Servers have codes that no table lists; 0 is an error without an answer. */
function retriedAt(status: number): 'once-answered' | 'always' {
  return status >= 400 && status < 500 ? 'once-answered' : 'always';
}

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined;
  return (error.$metadata as { httpStatusCode?: number }).httpStatusCode;
}

function detailOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, MAX_DETAIL);
}
