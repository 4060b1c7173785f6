/** An S3 server's refusal in words: which store, why, and what to do. Nothing of the request is kept: it is signed. */
import { TemperError } from '../../core/failures.ts';

/** Which store, as people know it. */
export interface S3Place {
  uri: string;
  /** Null for AWS itself. */
  endpoint: string | null;
}

const CREDENTIALS = 'correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE';
const UNKNOWN_KEY = `the server does not know the access key; ${CREDENTIALS}`;
const OTHER_REGION = 'the bucket is in another region; correct AWS_REGION';

/** What no repetition mends. */
const CONFIG: Record<string, string> = {
  NoSuchBucket: 'there is no such bucket; create it, or correct the name',
  InvalidBucketName: 'this is not a valid bucket name; correct it',
  InvalidAccessKeyId: UNKNOWN_KEY,
  XAdminUserNotFound: UNKNOWN_KEY,
  SignatureDoesNotMatch: `the secret key does not belong to the access key; ${CREDENTIALS}`,
  AccessDenied: 'these credentials lack a permission; allow s3:GetObject, PutObject, DeleteObject and ListBucket',
  Forbidden: `the credentials are wrong or lack a permission; ${CREDENTIALS}`,
  RequestTimeTooSkewed: 'the clocks of this host and of the server differ; synchronize them',
  PermanentRedirect: OTHER_REGION,
  AuthorizationHeaderMalformed: OTHER_REGION,
  CredentialsProviderError: `there are no credentials; ${CREDENTIALS}`,
  MissingRegion: 'no region is configured; set AWS_REGION (us-east-1 for most self-hosted servers)',
  NotImplemented: 'the server does not support this request; use one that does',
  NotFound: 'the server at that address does not speak S3; correct AWS_ENDPOINT_URL',
  ERR_INVALID_URL: 'the endpoint is not a URL; correct AWS_ENDPOINT_URL',
};

/** Of these, what was right once: keys are rotated and clocks put right under a living run. As in Python's table. */
const MENDED_LATER: ReadonlySet<string> = new Set([
  'CredentialsProviderError',
  'InvalidAccessKeyId',
  'RequestTimeTooSkewed',
  'SignatureDoesNotMatch',
]);

const UNAVAILABLE: Record<string, string> = {
  ExpiredToken: 'the credentials have expired; renew them',
  SlowDown: 'the server limits the request rate; start fewer workers',
  ECONNREFUSED: 'nothing listens at that address; start the server, or correct AWS_ENDPOINT_URL',
  ENOTFOUND: 'the host is unknown; correct AWS_ENDPOINT_URL, or check the network',
  ECONNRESET: 'the connection broke; check the server and the network',
  TimeoutError: 'the server took too long to answer; check the server and the network',
};

/** Answers to HEAD have no body, so that their status is all there is. */
const BY_STATUS: Record<number, string> = { 301: 'PermanentRedirect', 401: 'Forbidden', 403: 'Forbidden' };
/** What the SDK makes of an answer that S3 would not give. */
const NAMELESS: ReadonlySet<string> = new Set(['Error', 'Unknown', 'UnknownError']);
const MAX_DETAIL = 300;

/** Failures that are typed already pass unchanged. `hasAnswered`: the server took a request of this process before. */
export function asS3Failure(error: unknown, { uri, endpoint }: S3Place, hasAnswered = false): TemperError {
  if (error instanceof TemperError) return error;
  const name = nameOf(error);
  const isFinal = Object.hasOwn(CONFIG, name) && !(hasAnswered && MENDED_LATER.has(name));
  const type = isFinal ? 'BadConfig' : 'StoreUnavailable';
  const remedy = CONFIG[name] ?? UNAVAILABLE[name] ?? detailOf(error);
  const at = endpoint === null ? '' : ` at ${endpoint}`;
  // The SDK's own error carries the request, signature and all.
  const cause = new Error(`${name}: ${detailOf(error)}`);
  return new TemperError(type, `the store ${uri}${at} refused (${name}): ${remedy}`, { cause });
}

/** An answer to HEAD has no body, and 400 has many reasons: the request that follows is told which. */
export const isUnexplained = (error: unknown): boolean => statusOf(error) === 400;

/** Somebody's object has this key already. */
export const isTaken = (error: unknown): boolean => statusOf(error) === 412;

/** Somebody else writes this key at this moment: nothing is decided yet. */
export const isContended = (error: unknown): boolean => statusOf(error) === 409;

/** What came is not what was stored. */
export function isChecksumMismatch(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('Checksum mismatch');
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Error';
  if (/^Region (is missing|not accepted)/.test(error.message)) return 'MissingRegion';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const known = [code, error.name].find((name) => Object.hasOwn(CONFIG, name) || Object.hasOwn(UNAVAILABLE, name));
  const status = statusOf(error) ?? 0;
  return known ?? BY_STATUS[status] ?? (status === 404 && NAMELESS.has(code) ? 'NotFound' : code);
}

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined;
  return (error.$metadata as { httpStatusCode?: number }).httpStatusCode;
}

function detailOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, MAX_DETAIL);
}
