/** Errors as answers: status and text, and nothing of the machine for an error that nobody expected. */
import { TemperError, type FailureType } from '../../../core/failures.ts';
import { HttpRefusal } from '../../../play/transports/http-server.ts';
import type { ApiError } from '../../../views/api/requests.ts';
import { NotFound } from '../../../views/context/context.ts';
import { UsageError, WorkFailed } from '../../command-line/errors.ts';

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly code: string | null;
}

const STATUS: Partial<Record<FailureType, number>> = {
  BadConfig: 422,
  StoreUnavailable: 503,
  SourceUnavailable: 503,
  StoreCorrupt: 500,
  StepConflict: 409,
  LaterVersion: 409,
};

export function describeRefusal(error: unknown): Refusal {
  if (error instanceof HttpRefusal) return error;
  const { message } = error as Error;
  if (error instanceof NotFound) return { status: 404, message, code: 'not_found' };
  if (error instanceof UsageError) return { status: 422, message, code: 'invalid_value' };
  if (error instanceof WorkFailed) return { status: 409, message, code: 'failed' };
  if (error instanceof TemperError && STATUS[error.type] !== undefined)
    return { status: STATUS[error.type]!, message, code: error.type };
  console.error(error);
  return { status: 500, message: 'temper ui failed on this request; its terminal says more', code: 'internal' };
}

export function apiError({ message, code }: Refusal): ApiError {
  return { error: { message, code } };
}
