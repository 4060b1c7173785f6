/** Values of a history's events: times, payloads, failures, names of workers. */
import { defaultPayloadConverter } from '@temporalio/common';
import type proto from '@temporalio/proto';

export type HistoryEvent = proto.temporal.api.history.v1.IHistoryEvent;
export type Failure = proto.temporal.api.failure.v1.IFailure;
type Timestamp = proto.google.protobuf.ITimestamp;
type Payload = proto.temporal.api.common.v1.IPayload;

/** Null for none. Seconds are 64-bit numbers of one kind or another, by who decoded them. */
export function timestampMs(time: Timestamp | null | undefined): number | null {
  const ms = time ? Number(String(time.seconds ?? 0)) * 1000 + Math.floor((time.nanos ?? 0) / 1e6) : 0;
  return ms > 0 ? ms : null;
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** `PID@HOST`, as both SDKs name their workers. */
export function hostOf(identity: string | null): string | null {
  return identity === null ? null : (/^\d+@(.+)$/.exec(identity)?.[1] ?? identity);
}

/** The worker stopped beating, or never answered: it died, stood still or lost its connection. */
export function isLoss(failure: Failure): boolean {
  return Boolean(failure.timeoutFailureInfo);
}

export function failureText(failure: Failure): string {
  const type = failure.applicationFailureInfo?.type ?? null;
  const cause = failure.cause ? `: ${failureText(failure.cause)}` : '';
  const text = `${type === null || type === '' ? '' : `${type}: `}${failure.message ?? ''}${cause}`;
  return isLoss(failure) ? `the worker stopped responding (${text})` : text;
}

/** Null for a payload that this process cannot read. */
export function payloadText(payload: Payload | null | undefined): string | null {
  if (!payload) return null;
  try {
    const value = defaultPayloadConverter.fromPayload<unknown>(payload);
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
}
