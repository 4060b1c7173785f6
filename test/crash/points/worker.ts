/** The TypeScript worker with points: its disk, its calls and its side of Temporal wrapped, then started as always. */
import { subscribe } from 'node:diagnostics_channel';
import { Context } from '@temporalio/activity';
import type { Payload, PayloadCodec } from '@temporalio/common';
import { Worker, type ActivityInboundCallsInterceptor, type WorkerOptions } from '@temporalio/worker';
import { layFilePoints } from './file-points.ts';
import { isInBucket, openPoints, pass, reach } from './reach.ts';

openPoints('typescript-worker');
layFilePoints();
// The SDK is large, and its loading would count as recovery where there is no bucket.
if (isInBucket()) (await import('./s3-points.ts')).layS3Points();
subscribe('undici:request:bodySent', () => pass('call.sent'));
subscribe('undici:request:trailers', () => pass('call.answered'));

/** Before it starts, at each beat, and with its result in hand, before the server is told. */
const activityPoints: ActivityInboundCallsInterceptor = {
  async execute(input, next) {
    const context = Context.current();
    const { activityType, attempt } = context.info;
    const beat = context.heartbeat;
    Object.assign(context, {
      heartbeat: (details: unknown) => {
        pass('heartbeat');
        beat(details);
      },
    });
    await reach(`${activityType}.entry`);
    if (attempt > 1) await reach(`${activityType}.again`);
    const result = await next(input);
    await reach(`${activityType}.done`);
    return result;
  },
};

/** Sees what a workflow sends and gets, and changes nothing of it: workflow code itself has no points. */
const workflowPoints: PayloadCodec = {
  async encode(payloads) {
    for (const payload of payloads) {
      const point = pointOf(payload);
      if (point !== null) await reach(point);
    }
    return payloads;
  },
  async decode(payloads) {
    for (const payload of payloads) if (pointOf(payload) === 'workflow.continues') await reach('workflow.continued');
    return payloads;
  },
};

/** The point is told by the members of the contract's types. */
function pointOf({ data }: Payload): string | null {
  const value = parse(data);
  if (value === null) return null;
  if ('carried' in value) return value['carried'] === null ? null : 'workflow.continues';
  if ('minimumGroupSize' in value) return 'group' in value ? 'workflow.plans-rollout' : 'workflow.plans-judge';
  if ('firstScenario' in value) return 'workflow.plans-evaluate';
  if ('parent' in value && 'groups' in value) return 'workflow.plans-train';
  if ('summary' in value) return 'workflow.plans-checkpoint';
  return 'phase' in value && 'wallSeconds' in value ? 'workflow.ends' : null;
}

function parse(data: Uint8Array | null | undefined): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data ?? new Uint8Array()));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

const create = Worker.create.bind(Worker);
Worker.create = (options: WorkerOptions) =>
  create({
    ...options,
    dataConverter: { payloadCodecs: [workflowPoints] },
    interceptors: { activity: [() => ({ inbound: activityPoints })] },
  });

await import('../../../workers/worker/worker-main.ts');
