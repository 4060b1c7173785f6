/** Schedules on a project's Temporal server, with a deadline and readable errors. */
import {
  isGrpcServiceError,
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type ScheduleClient,
  type ScheduleHandle,
} from '@temporalio/client';
import { badConfig, WorkFailed, type TemperError } from '../core/contract/failures.ts';
import { scheduleId } from '../core/names/queues.ts';
import { isPassing, type TemporalClient } from '../workers/connection/connection.ts';
import { openProjectStore } from '../workers/config/project-store.ts';
import type { ProjectPlace } from './operation.ts';
import { findStoreId } from '../store/bytes/store-id.ts';
import { ANSWER_WITHIN_MS, requireServer } from './server.ts';

export async function withSchedules<T>(
  place: ProjectPlace,
  ask: (schedules: ScheduleClient, server: TemporalClient) => Promise<T>,
): Promise<T> {
  const server = await requireServer(place);
  try {
    const { schedule } = server.client;
    return await schedule.withDeadline(Date.now() + ANSWER_WITHIN_MS, () => ask(schedule, server));
  } catch (error) {
    throw explain(error);
  } finally {
    await server.close();
  }
}

/** One schedule, by its name. */
export function withSchedule<T>(
  place: ProjectPlace,
  name: string,
  ask: (handle: ScheduleHandle) => Promise<T>,
): Promise<T> {
  return withSchedules(place, async (schedules) => {
    const store = await openProjectStore(place.project, place.env);
    const storeId = await findStoreId(store);
    if (storeId === null) throw noSchedule(name);
    return ask(schedules.getHandle(scheduleId(storeId, name)));
  });
}

/** gRPC code INVALID_ARGUMENT. */
const REFUSED: readonly number[] = [3];

function explain(error: unknown): unknown {
  if (error instanceof ScheduleNotFoundError) return noSchedule(nameIn(error.scheduleId), error);
  if (error instanceof ScheduleAlreadyRunning) {
    const name = nameIn(error.scheduleId);
    const message = `a schedule ${name} exists; choose another --name, or delete it first: temper schedule delete ${name}`;
    return badConfig(message, { cause: error });
  }
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (isGrpcServiceError(cause) && REFUSED.includes(cause.code))
      return badConfig(`Temporal rejected the schedule: ${cause.details}; change the flag that it names`, {
        cause: error,
      });
  if (isPassing(error)) {
    const message = `the Temporal server did not answer within ${ANSWER_WITHIN_MS / 1000} s; see temper doctor`;
    return new WorkFailed(message, { cause: error });
  }
  return error;
}

function noSchedule(name: string, cause?: unknown): TemperError {
  const message = `no schedule ${name} on this server; see temper schedule list`;
  return badConfig(message, { cause });
}

function nameIn(id: string): string {
  return id.slice(id.lastIndexOf('/') + 1);
}
