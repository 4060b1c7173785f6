/** Trackio's `bulk_log` as version 0.43 does it: of rows with one `log_id`, the first stays. */
import { z } from 'zod';
import { Refused, startStandIn, type StandIn, type StandInOptions } from '../stand-in.ts';

export interface TrackioRow {
  run: string;
  run_id: string;
  step: number;
  metrics: Record<string, number | string>;
}

export interface TrackioStandIn extends StandIn {
  readonly key: string;
  readonly rows: Map<string, TrackioRow>;
}

const BulkLog = z.strictObject({
  logs: z.array(
    z.strictObject({
      project: z.string().min(1),
      run: z.string(),
      run_id: z.string(),
      metrics: z.record(z.string(), z.union([z.number(), z.string()])),
      step: z.int(),
      config: z.record(z.string(), z.unknown()),
      log_id: z.string(),
    }),
  ),
  hf_token: z.string().nullable(),
});

export async function startTrackio(options: Pick<StandInOptions, 'fault' | 'hold'> = {}): Promise<TrackioStandIn> {
  const key = 'trackio-canary-0123456789';
  const rows = new Map<string, TrackioRow>();
  const server = await startStandIn({
    ...options,
    key,
    routes: [
      {
        method: 'POST',
        path: /^\/api\/bulk_log$/,
        answer(request) {
          if (request.headers['x-trackio-write-token'] !== key) throw new Refused(400, 'A write_token is required');
          for (const { log_id: id, run, run_id, step, metrics } of request.json(BulkLog).logs)
            if (!rows.has(id)) rows.set(id, { run, run_id, step, metrics });
          return { json: { data: null } };
        },
      },
    ],
  });
  return { ...server, key, rows };
}
