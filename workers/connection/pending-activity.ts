/** An unfinished activity of a workflow as the server describes it, and what its worker last said of it. */
import { defaultPayloadConverter } from '@temporalio/common';
import { tsToMs } from '@temporalio/common/lib/time.js';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import proto from '@temporalio/proto';

export type RawPending = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];

const { PendingActivityState } = proto.temporal.api.enums.v1;

/** Not started, or between two attempts. */
export function isScheduled({ state }: RawPending): boolean {
  return state === PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED;
}

export type PendingTime = RawPending['lastStartedTime'];

/** Heartbeat details: progress of a group from TypeScript workers, the current phase from the GPU worker. */
export interface Heartbeat {
  step?: number;
  phase?: string;
  since?: string;
  done?: number;
  of?: number;
  /** Finished groups of an activity that plays several. */
  groups?: { done: number; of: number };
  /** The judge that is asked for a verdict. */
  judge?: string;
  /** Attempts whose resources are being set up or ended. */
  resources?: { settingUp: number; ending: number };
  waiting?: { attempts: number; awaited?: string; reason: string; since?: string; nextTryAt?: string | null } | null;
}

export function readHeartbeat({ heartbeatDetails }: RawPending): Heartbeat {
  const payload = heartbeatDetails?.payloads?.[0];
  if (!payload) return {};
  try {
    return defaultPayloadConverter.fromPayload<Heartbeat | null>(payload) ?? {};
  } catch {
    return {};
  }
}

export function toMs(time: PendingTime): number | null {
  const ms = time ? tsToMs(time) : 0;
  return ms > 0 ? ms : null;
}
